//! The command palette, which lists all actions.

use super::App;
use super::overlay::ChatOverlay;
use crate::keys::KeyAction;
use crate::picker::{Picker, PickerItem};

impl App {
    pub(super) fn command_palette(&self) -> ChatOverlay {
        let items = KeyAction::ALL.iter().filter(|a| **a != KeyAction::Palette);
        let items = items
            .map(|action| {
                let key = self.setup.keys.key(*action);
                let key = key.map(|key| key.to_string()).unwrap_or_default();
                let mut item = PickerItem::new(*action, action.about());
                item.detail = key;
                item
            })
            .collect();
        ChatOverlay::Palette(Picker::new("Commands", items))
    }
}
