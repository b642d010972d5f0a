//! Notices: information for the user that is not part of the conversation. Unstable; the client must support
//! `session.notices`.

record! {
    /// A notice.
    pub struct Notice {
        /// The severity.
        required severity: NoticeSeverity,
        /// A short title, at least one character long.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_text))]
        required title: String,
        /// The details.
        optional description: String,
    }
}

open_enum! {
    /// The severity of a notice.
    pub enum NoticeSeverity {
        /// Information.
        Info = "info",
        /// A warning.
        Warning = "warning",
        /// A failure.
        Error = "error",
    }
}

record! {
    /// An empty object that marks a client that shows notices.
    pub struct NoticeCapabilities {}
}
