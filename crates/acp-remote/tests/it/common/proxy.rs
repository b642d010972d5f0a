//! A proxy that cuts connections.
