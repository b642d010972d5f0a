//! The same work done by this project and by its peers, side by side: what all of the programs share that
//! take part in it. `README.md` says what a peer is.

pub mod control;
pub mod work;
