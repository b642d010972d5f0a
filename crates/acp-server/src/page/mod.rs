//! The page: live sessions in a browser.
//!
//! The browser gets fragments of HTML, which replace elements by their id. Everything is rendered here, by the same code
//! as the page of a trace (`acp_html`). The script only puts fragments in their places and sends what the user does.
//!
//! | path | |
//! |---|---|
//! | `GET /` | the list of sessions, or the form to sign in |
//! | `GET /sign-in?code=CODE` | signs in with a code, which can be used once |
//! | `POST /sign-in` | signs in with the server's token |
//! | `GET /sessions` | the list of sessions, as a fragment |
//! | `POST /new` | starts a session |
//! | `GET /session?agent=NAME&id=ID&cwd=DIR` | a session |
//! | `GET /events?…` | what happens in the session, as server-sent events |
//! | `POST /views/VIEW/ACTION` | what the user does in a view of a session |
//! | `GET /page.css`, `GET /page.js` | style and script |
//!
//! What is where:
//!
//! | file | subject |
//! |---|---|
//! | `access.rs` | who may see the page: host, origin, and what was signed in with |
//! | `sign_in.rs` | one-time codes, and the cookies that browsers get for them |
//! | `routes.rs` | the handlers of the paths |
//! | `list.rs` | the list of sessions |
//! | `view.rs` | a browser's view of a session: it is a client like any other |
//! | `fragments.rs` | the HTML of a view, and which parts of it have changed |
//! | `actions.rs` | what the user does in a view |

mod access;
mod actions;
mod fragments;
mod list;
mod routes;
mod sign_in;
mod view;

pub(crate) use routes::{PageState, page_router};
