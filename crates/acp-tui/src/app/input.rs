//! Routes keys, mouse events and pasted text to the parts of the chat that handle them.

use std::time::{Duration, Instant};

use acp_config::EditingMode;
use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;

use super::commands::ChatCommand;
use super::overlay::ChatOverlay;
use super::search::SearchDirection;
use super::tab::Tab;
use super::{App, ChatEffect, ChatFocus, QUIT_CONFIRM_TIME, commands};
use crate::editor;
use crate::keys::KeyAction;
use crate::question;

/// The time within which Esc must be pressed again to clear the prompt, or to list the turns that can be undone.
const KEY_REPEAT_TIME: Duration = Duration::from_secs(2);

/// The number of lines to scroll per step of the mouse wheel.
const WHEEL_LINES: isize = 3;

impl App {
    /// Handles a key by passing it to the topmost element that accepts it.
    pub(super) fn handle_key(&mut self, key: KeyEvent) -> Vec<ChatEffect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.last_quit_request = self.quit_requested_at.take();
        let escape_before = self.escape_pressed_at.take();
        if self.overlay.is_some() {
            return self.handle_overlay_key(key);
        }
        let action = self.setup.keys.action(key);
        if let (None, KeyCode::Char(digit @ '1'..='9')) = (action, key.code)
            && key.modifiers == KeyModifiers::ALT
        {
            self.show_tab(usize::from(digit as u8 - b'1'));
            return Vec::new();
        }
        // A question takes the key, except for keys that always work, such as those that switch tabs.
        if action.is_none_or(|action| !action.works_during_questions()) {
            if let Some(effects) = self.handle_question_key(key) {
                return effects;
            }
            if let Some(effects) = self.handle_failure_key(key) {
                return effects;
            }
            if let Some(effects) = self.handle_thread_key(key) {
                return effects;
            }
        }
        match key.code {
            // A popup of the editor is closed before anything is cancelled.
            KeyCode::Esc if !self.tab_key_moves_focus() || self.escape_is_for_prompt() => {
                return self.handle_prompt_key(key);
            }
            KeyCode::Esc => return self.handle_escape(escape_before),
            KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
                return self.handle_interrupt();
            }
            KeyCode::Char('d')
                if key.modifiers == KeyModifiers::CONTROL && self.is_prompt_empty() =>
            {
                return self.request_quit();
            }
            _ => {}
        }
        let is_for_label = key.code == KeyCode::Tab && self.is_prompt_at_label();
        if let Some(action) = action
            && (action != KeyAction::FocusThread || self.tab_key_moves_focus() && !is_for_label)
        {
            return self.perform_action(action);
        }
        self.handle_prompt_key(key)
    }

    /// Handles a key in the prompt editor.
    fn handle_prompt_key(&mut self, key: KeyEvent) -> Vec<ChatEffect> {
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        if key.code == KeyCode::Up && key.modifiers.is_empty() && tab.unqueue_last() {
            return Vec::new();
        }
        if key.code == KeyCode::Char('?') && tab.editor.is_empty() {
            self.overlay = Some(ChatOverlay::help(&self.setup.keys, &self.setup.theme));
            return Vec::new();
        }
        let nothing = tab.editor.is_empty();
        match tab.editor.handle_key(key) {
            // Enter on an empty prompt after a cancel continues with the queued prompts.
            _ if nothing && key.code == KeyCode::Enter && key.modifiers.is_empty() => {
                tab.send_queued()
            }
            editor::EditorOutcome::Submit => self.submit_prompt(Tab::steer_or_submit),
            editor::EditorOutcome::Note(text) => {
                self.show_note(text);
                Vec::new()
            }
            editor::EditorOutcome::Changed | editor::EditorOutcome::Ignored => Vec::new(),
        }
    }

    /// Takes the prompt from the editor. Performs it if it is a command of the chat, and otherwise calls `submit`.
    pub(super) fn submit_prompt(
        &mut self,
        submit: impl FnOnce(&mut Tab, editor::PromptDraft) -> Vec<ChatEffect>,
    ) -> Vec<ChatEffect> {
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        if tab.is_shell_prompt() {
            return self.run_shell();
        }
        let draft = tab.editor.take();
        let command = match draft.attachments() {
            [] => commands::find_command(draft.display_text(), &tab.commands),
            _ => None,
        };
        match command {
            Some(ChatCommand::Action(action)) => return self.perform_action(action),
            Some(ChatCommand::WithArgument(action, argument)) => {
                return match self.perform_with_argument(action, &argument) {
                    Ok(effects) => effects,
                    Err(note) => self.return_command(draft, note),
                };
            }
            Some(ChatCommand::NoArguments(name)) => {
                return self.return_command(draft, format!("/{name} takes no arguments"));
            }
            None => {}
        }
        if draft.attachments().is_empty()
            && let Some(note) = commands::unknown_command_note(draft.display_text(), &tab.commands)
            && tab.unknown_command.as_deref() != Some(draft.display_text())
        {
            tab.unknown_command = Some(draft.display_text().to_owned());
            tab.editor.set(draft);
            self.show_note(note);
            return Vec::new();
        }
        tab.unknown_command = None;
        submit(tab, draft)
    }

    /// Returns a command that was not performed to the editor, and says why.
    fn return_command(&mut self, draft: editor::PromptDraft, note: String) -> Vec<ChatEffect> {
        if let Some(tab) = self.active_tab_mut() {
            tab.editor.set(draft);
        }
        self.show_note(note);
        Vec::new()
    }

    pub(super) fn handle_paste(&mut self, text: &str) -> Vec<ChatEffect> {
        if let Some(overlay) = &mut self.overlay {
            overlay.paste(text);
            return Vec::new();
        }
        self.focus = ChatFocus::Input;
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        if let Some(question) = &mut tab.question
            && !matches!(
                question.handle_paste(text, Instant::now()),
                question::QuestionOutcome::Early
            )
        {
            return Vec::new();
        }
        if let editor::EditorOutcome::Note(said) = tab.editor.paste(text) {
            self.show_note(said);
        }
        Vec::new()
    }

    pub(super) fn handle_mouse(&mut self, mouse: MouseEvent) -> Vec<ChatEffect> {
        let by = match mouse.kind {
            MouseEventKind::ScrollUp => -WHEEL_LINES,
            MouseEventKind::ScrollDown => WHEEL_LINES,
            MouseEventKind::Down(MouseButton::Left) => {
                self.handle_click(Position::new(mouse.column, mouse.row));
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        if let Some(overlay) = &mut self.overlay {
            overlay.scroll(by);
        } else if let Some(tab) = self.active_tab_mut() {
            match &mut tab.question {
                Some(question) => drop(question.scroll(by)),
                None if by < 0 => tab.view.scroll_up(by.unsigned_abs()),
                None => tab.view.scroll_down(by.unsigned_abs()),
            }
        }
        Vec::new()
    }

    /// Handles a click: selects an item of a list, or expands or collapses an item of the conversation.
    ///
    /// A click never confirms anything, and it does nothing in a question.
    fn handle_click(&mut self, at: Position) {
        if let Some(overlay) = &mut self.overlay {
            overlay.select_at(at);
        } else if let Some(tab) = self.active_tab_mut()
            && let Some(item) = tab.view.item_at(at)
        {
            tab.view.toggle_item(item);
        }
    }

    /// Handles a key for the open question.
    fn handle_question_key(&mut self, key: KeyEvent) -> Option<Vec<ChatEffect>> {
        if self.focus == ChatFocus::Thread {
            return None;
        }
        let agent = self.tabs.get(self.active)?.agent;
        let agent = self.agent(agent)?;
        let (questions, name) = (std::sync::Arc::clone(&agent.questions), agent.name());
        let tab = self.active_tab_mut()?;
        let question = tab.question.as_mut()?;
        match question.handle_key(key, Instant::now()) {
            question::QuestionOutcome::Ignored => None,
            // The key belongs to the prompt that was being written when the question appeared.
            question::QuestionOutcome::Early => Some(self.handle_prompt_key(key)),
            question::QuestionOutcome::Changed => Some(Vec::new()),
            question::QuestionOutcome::OpenAddress(address) => {
                Some(vec![ChatEffect::OpenAddress {
                    question: question.id(),
                    tab: tab.key,
                    address,
                }])
            }
            question::QuestionOutcome::Instead => {
                let question = question.id();
                self.ask_instead(question);
                Some(Vec::new())
            }
            question::QuestionOutcome::Answer(answer) => {
                tab.answer(&questions, &name, answer);
                Some(Vec::new())
            }
        }
    }

    /// Handles a key for the conversation.
    fn handle_thread_key(&mut self, key: KeyEvent) -> Option<Vec<ChatEffect>> {
        if self.focus != ChatFocus::Thread {
            return None;
        }
        let plain = key.modifiers.is_empty() || key.modifiers == KeyModifiers::SHIFT;
        let control = key.modifiers == KeyModifiers::CONTROL;
        let is_vim = self.setup.editing == EditingMode::Vim;
        let tab = self.tabs.get_mut(self.active)?;
        match key.code {
            KeyCode::Up | KeyCode::Char('k') if plain => tab.select(-1),
            KeyCode::Down | KeyCode::Char('j') if plain => tab.select(1),
            KeyCode::Char('g') | KeyCode::Home if plain => tab.view.go_to_beginning(),
            KeyCode::Char('G') | KeyCode::End if plain => tab.view.go_to_end(),
            KeyCode::Char('u') if is_vim && control => {
                tab.view.scroll_up(tab.view.page_height() / 2)
            }
            KeyCode::Char('d') if is_vim && control => {
                tab.view.scroll_down(tab.view.page_height() / 2);
            }
            KeyCode::Enter | KeyCode::Char(' ') if plain => tab.view.toggle(),
            KeyCode::Char('d') if plain => tab.view.toggle_layout(),
            KeyCode::Char('e') if plain => tab.view.toggle_all(),
            KeyCode::Char('y' | 'c') if plain => {
                let number = tab.view.selected()?;
                let text = tab.thread.read(|thread| copyable_text(thread, number))?;
                self.show_note("copied");
                return Some(vec![ChatEffect::Copy(text)]);
            }
            KeyCode::Char('?') if plain => {
                self.overlay = Some(ChatOverlay::help(&self.setup.keys, &self.setup.theme));
            }
            KeyCode::Char('o') if plain => return Some(self.list_targets()),
            KeyCode::Char('/') if plain => self.ask_for_search(),
            KeyCode::Char('n') if plain => self.search_again(SearchDirection::Forward),
            KeyCode::Char('N') if plain => self.search_again(SearchDirection::Backward),
            KeyCode::Esc | KeyCode::Tab | KeyCode::Char('i' | 'q') if plain => {
                self.leave_thread();
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    pub(super) fn leave_thread(&mut self) {
        self.focus = ChatFocus::Input;
        if let Some(tab) = self.active_tab_mut() {
            tab.view.deselect();
        }
    }

    /// Returns whether the Tab key moves the focus to the conversation, which it does unless the editor shows a popup.
    fn tab_key_moves_focus(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_none_or(|tab| !tab.editor.has_popup())
    }

    /// Returns whether the Tab key expands a label in the prompt.
    fn is_prompt_at_label(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_some_and(|tab| tab.question.is_none() && tab.editor.is_at_label())
    }

    /// Returns whether Esc leaves Vim's insert mode, which comes before what it otherwise does.
    fn escape_is_for_prompt(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_some_and(|tab| tab.question.is_none() && tab.editor.uses_escape())
    }

    fn is_prompt_empty(&self) -> bool {
        let tab = self.tabs.get(self.active);
        tab.is_none_or(|tab| tab.editor.is_empty())
    }

    /// Handles Ctrl-C: cancels the turn or clears the prompt. Quits if pressed twice.
    fn handle_interrupt(&mut self) -> Vec<ChatEffect> {
        if self.active_tab_mut().is_some_and(Tab::stop_shell) {
            return Vec::new();
        }
        let working = self.active_tab_mut().is_some_and(|tab| tab.is_working());
        if working {
            return self.cancel();
        }
        if !self.is_prompt_empty() {
            self.clear_prompt();
            return Vec::new();
        }
        let last = self.last_quit_request;
        if last.is_some_and(|pressed| pressed.elapsed() < QUIT_CONFIRM_TIME) {
            return self.quit();
        }
        self.quit_requested_at = Some(Instant::now());
        self.show_note("Press Ctrl-C again to quit");
        Vec::new()
    }

    /// Handles Esc: stops the user's command, or else cancels the turn. If there is nothing to cancel and the key is pressed
    /// twice, clears the prompt or, if it is empty, lists the turns that can be undone.
    fn handle_escape(&mut self, pressed_before: Option<Instant>) -> Vec<ChatEffect> {
        let Some(tab) = self.tabs.get_mut(self.active) else {
            return Vec::new();
        };
        if tab.stop_shell() {
            return Vec::new();
        }
        if tab.is_working() || tab.question.is_some() {
            return self.cancel();
        }
        let is_prompt_empty = tab.editor.is_empty();
        if is_prompt_empty && tab.history.turns().is_empty() {
            return Vec::new();
        }
        // In Vim, pressing Esc often is a habit.
        if !is_prompt_empty && tab.editor.vim_mode().is_some() {
            return Vec::new();
        }
        let is_second = pressed_before.is_some_and(|pressed| pressed.elapsed() < KEY_REPEAT_TIME);
        match (is_second, is_prompt_empty) {
            (true, true) => self.show_turns(),
            (true, false) => self.clear_prompt(),
            (false, _) => {
                self.escape_pressed_at = Some(Instant::now());
                if !is_prompt_empty {
                    self.show_note("Press Esc again to clear the prompt");
                }
            }
        }
        Vec::new()
    }

    fn clear_prompt(&mut self) {
        if let Some(tab) = self.active_tab_mut() {
            tab.editor.clear();
        }
        self.show_note("Prompt cleared; Ctrl-_ brings it back");
    }

    /// Cancels the current work of the active tab's agent.
    pub(super) fn cancel(&mut self) -> Vec<ChatEffect> {
        let Some(tab) = self.tabs.get(self.active) else {
            return Vec::new();
        };
        if !tab.is_working() && tab.question.is_none() {
            return Vec::new();
        }
        let Some(questions) = self
            .agent(tab.agent)
            .map(|agent| std::sync::Arc::clone(&agent.questions))
        else {
            return Vec::new();
        };
        self.active_tab_mut()
            .map(|tab| tab.cancel(&questions))
            .unwrap_or_default()
    }
}

/// Returns the text to copy for an item: its own text or, for a tool call, the output.
fn copyable_text(thread: &acp::Thread, number: usize) -> Option<String> {
    use acp::thread::{ItemKind, ThreadToolCallContent};
    let item = thread
        .items()
        .get(number.checked_sub(thread.truncation().items)?)?;
    match &item.kind {
        ItemKind::User(m) | ItemKind::Agent(m) | ItemKind::Thought(m) => Some(m.text()),
        ItemKind::ToolCall(call) => {
            let mut text = String::new();
            for content in &call.content {
                match content {
                    ThreadToolCallContent::Content(block) => {
                        text.push_str(block.as_text().unwrap_or_default());
                    }
                    ThreadToolCallContent::Terminal(id) => {
                        text.push_str(&thread.terminal(id).map(|t| t.output()).unwrap_or_default());
                    }
                    _ => {}
                }
            }
            if text.is_empty() {
                text.clone_from(&call.title);
            }
            Some(text)
        }
        ItemKind::Notice(notice) => Some(match &notice.description {
            Some(more) => format!("{}\n{more}", notice.title),
            None => notice.title.clone(),
        }),
        _ => None,
    }
}
