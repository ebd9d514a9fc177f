//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};

/// A port nobody listened on a moment ago.
///
/// Another process may take it before its user binds it, so whoever starts a server on it tries again with
/// another one; programs that can bind port 0 themselves should do that instead.
pub fn free() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
