//! Which door.

use std::fmt;
use std::path::PathBuf;

use http::Uri;
use model::error::Malformed;

use super::ClientError;
use crate::guard::Scheme;

const MALFORMED: Malformed = Malformed::new("url", "an address such as http://127.0.0.1:7440");

/// The address of a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A Unix socket.
    Unix(PathBuf),
    /// A URL.
    Tcp {
        /// How to speak.
        scheme: Scheme,
        /// A name or an address, as it is dialled.
        host: String,
        /// The port.
        port: u16,
        /// Before every path; empty, or with a leading and without a trailing slash.
        base: String,
    },
}

impl Target {
    /// The door of a URL such as `http://127.0.0.1:7440` or `https://example.org/post`.
    pub fn of_url(url: &str) -> Result<Self, Malformed> {
        let uri: Uri = url.parse().map_err(|_| MALFORMED)?;
        let scheme = uri.scheme_str().and_then(Scheme::parse).ok_or(MALFORMED)?;
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or(MALFORMED)?;
        if uri.query().is_some() || authority.host().is_empty() {
            return Err(MALFORMED);
        }
        Ok(Self::Tcp {
            scheme,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(scheme.port()),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(super) fn uri(&self, path: &str) -> Result<Uri, ClientError> {
        let text = match self {
            Target::Unix(_) => format!("http://localhost{path}"),
            Target::Tcp { base, .. } => format!("{self}{base}{path}"),
        };
        text.parse().map_err(|_| ClientError::BadPath)
    }
}

/// As people write it, without the base.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Unix(path) => path.display().fmt(f),
            Target::Tcp { scheme, host, port, .. } => {
                let scheme = scheme.prefix();
                if host.contains(':') {
                    write!(f, "{scheme}[{host}]:{port}")
                } else {
                    write!(f, "{scheme}{host}:{port}")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_dialled_as_it_says() {
        for (url, asked) in [
            ("http://127.0.0.1:7440", "http://127.0.0.1:7440/v1/x?y=1"),
            ("http://[::1]:7440/", "http://[::1]:7440/v1/x?y=1"),
            ("http://example.org", "http://example.org:80/v1/x?y=1"),
            ("https://example.org/post/", "https://example.org:443/post/v1/x?y=1"),
        ] {
            assert_eq!(Target::of_url(url).unwrap().uri("/v1/x?y=1").unwrap(), asked);
        }
        for bad in ["", "127.0.0.1:7440", "ftp://a", "http://", "http://u:p@a/", "http://a/?q=1", "/x"] {
            assert!(Target::of_url(bad).is_err(), "{bad}");
        }
    }
}
