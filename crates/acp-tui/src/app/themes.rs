//! The theme of the chat: follows the terminal's background, and lets the user choose another theme.

use acp_config::UserConfig;
use acp_config::themes::{ThemeSetting, list_themes};

use super::App;
use super::overlay::ChatOverlay;
use crate::picker::{Picker, PickerItem};
use crate::theme::ThemePair;

/// A list of themes. The chat shows the selected theme as the selection moves.
pub(super) type ThemePicker = Picker<Option<ThemePair>>;

impl App {
    /// Opens the list of themes.
    pub(super) fn choose_theme(&mut self) {
        let current = self.setup.themes.setting();
        let colors = self.setup.theme.colors;
        let item = |setting: ThemeSetting, label: String, mut detail: String| {
            let is_current = setting == *current;
            let read = match is_current {
                true => Ok(self.setup.themes.clone()),
                false => ThemePair::read(&setting, colors),
            };
            let (themes, error) = match read {
                Ok(themes) => (Some(themes), None),
                Err(error) => {
                    // The row names the theme. The directory before it would leave no room for the error.
                    let (error, file) = (error.to_string(), format!("{label}.toml"));
                    let at = error.find(&file).unwrap_or_default();
                    detail.clear();
                    (None, Some(error.split_at(at).1.to_owned()))
                }
            };
            let mut item = PickerItem::new(themes, label);
            item.detail = detail;
            item.is_current = is_current;
            item.disabled = error;
            item
        };
        let auto = ThemeSetting::default();
        let about = "dark or light, like the terminal";
        let mut items = vec![item(auto, "auto".to_owned(), about.to_owned())];
        items.extend(list_themes().into_iter().map(|theme| {
            let label = theme.name.to_string();
            item(theme.name.into(), label, theme.about)
        }));
        if !items.iter().any(|item| item.is_current) {
            let about = format!("{} or {}, like the terminal", current.dark, current.light);
            items.insert(0, item(current.clone(), "as configured".to_owned(), about));
        }
        self.overlay = Some(ChatOverlay::Themes(Picker::new("Theme", items)));
    }

    /// Shows the theme that is selected in the list of themes or, if the list is not open, the chosen one.
    ///
    /// This is done after each event, so no other code has to know what the theme depends on.
    pub(super) fn show_selected_theme(&mut self) {
        let selected = match &self.overlay {
            Some(ChatOverlay::Themes(picker)) => picker.selected().and_then(Option::as_ref),
            _ => None,
        };
        let themes = selected.unwrap_or(&self.setup.themes);
        let theme = themes.for_background(self.setup.background);
        if self.setup.theme != *theme {
            self.setup.theme = theme.clone();
            for tab in &mut self.tabs {
                tab.view.forget_layouts();
            }
        }
    }

    /// Uses the theme with this name until the chat ends.
    ///
    /// # Errors
    /// There is no such theme, or its file is invalid. Contains what to tell the user.
    pub(super) fn use_theme(&mut self, name: &str) -> Result<(), String> {
        let setting: ThemeSetting = name.parse().map_err(|_| format!("no theme `{name}`"))?;
        let themes = ThemePair::read(&setting, self.setup.theme.colors);
        self.use_themes(themes.map_err(|e| e.to_string())?);
        Ok(())
    }

    /// Uses these themes until the chat ends, and says how to keep them.
    pub(super) fn use_themes(&mut self, themes: ThemePair) {
        let setting = themes.setting();
        let name = match setting {
            setting if *setting == ThemeSetting::default() => "\"auto\"".to_owned(),
            setting if setting.dark == setting.light => format!("\"{}\"", setting.dark),
            setting => format!(
                "{{ dark = \"{}\", light = \"{}\" }}",
                setting.dark, setting.light
            ),
        };
        let file = UserConfig::display_path();
        self.show_note(format!(
            "Theme set for this chat. To keep it, set theme = {name} under [chat] in {file}"
        ));
        self.setup.themes = themes;
    }
}
