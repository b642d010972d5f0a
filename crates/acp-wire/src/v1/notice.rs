//! Notices: information for the user that is not part of the conversation. Unstable: requires the client's capability
//! `session.notices`.

record! {
    /// Information for the user that is not part of the conversation.
    pub struct Notice {
        /// The severity of the notice.
        required severity: NoticeSeverity,
        /// A short, non-empty title.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_string))]
        required title: String,
        /// Details about the notice.
        optional description: String,
    }
}

open_enum! {
    /// The severity of a notice.
    pub enum NoticeSeverity {
        /// Something that is useful to know.
        Info = "info",
        /// Something that may become a problem.
        Warning = "warning",
        /// Something failed.
        Error = "error",
    }
}

record! {
    /// An empty object that declares support for notices.
    pub struct NoticeCapabilities {}
}
