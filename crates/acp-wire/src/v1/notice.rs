//! Notices: what an agent wants a person to know that is not part of the conversation. Unstable: for
//! clients that have `session.notices`.

record! {
    /// A notice.
    pub struct Notice {
        /// How serious it is.
        required severity: NoticeSeverity,
        /// What it says, in a few words; at least one character.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_text))]
        required title: String,
        /// More of it.
        optional description: String,
    }
}

open_enum! {
    /// How serious a notice is.
    pub enum NoticeSeverity {
        /// Good to know.
        Info = "info",
        /// Something is not as it should be.
        Warning = "warning",
        /// Something failed.
        Error = "error",
    }
}

record! {
    /// Present when the client shows notices.
    pub struct NoticeCapabilities {}
}
