//! The real binary as a server, asked over HTTP as programs and agents ask it: who comes in, what is
//! answered, what is too much, and how it ends.
//!
//! `house.rs` starts and stops it, on a port of its own and a database of its own; `issuer.rs` is an
//! identity provider that the tests run themselves. Nothing leaves this machine.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot reach the server must fail"
)]

mod access;
mod basics;
mod events;
mod figures;
mod house;
mod interrupted;
mod issuer;
mod jwt;
mod limits;
mod mcp;
mod notify;
mod openapi;
mod place;
mod plan;
mod routes;
mod sessions;
mod sign_in;
mod telemetry;
mod tenants;
