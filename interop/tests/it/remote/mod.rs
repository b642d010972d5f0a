//! The remote transports: clients and agents on the official SDKs as peers of ours, over WebSocket and streamable HTTP.
//!
//! The programs are those of the other tests, with `--url` and `--listen`. Each module of [`clients`] and [`servers`] is
//! one combination of client, transport and server. Without node, those with the TypeScript SDK are skipped, and say so.

mod clients;
mod servers;
