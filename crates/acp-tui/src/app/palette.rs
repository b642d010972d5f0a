//! The list of everything that can be done.

use super::App;
use super::overlay::Overlay;
use crate::keys::Action;
use crate::picker::{Item, Picker};

impl App {
    pub(super) fn palette(&self) -> Overlay {
        let items = Action::ALL.iter().filter(|a| **a != Action::Palette);
        let items = items
            .map(|action| {
                let key = self.setup.keys.key(*action);
                let key = key.map(|key| key.to_string()).unwrap_or_default();
                let mut item = Item::new(*action, action.about());
                item.detail = key;
                item
            })
            .collect();
        Overlay::Palette(Picker::new("Do", items))
    }
}
