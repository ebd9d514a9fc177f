//! The names a door answers to.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use http::header::HOST;
use http::{HeaderMap, Uri};
use model::ErrorCode;

use crate::respond::Refusal;
use crate::serve::Caller;

/// Which `Host` a door wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Whatever it says: on a Unix socket the path was the address.
    Ignored,
    /// One of these, or the very address the caller dialled. An address cannot be made to point elsewhere, so
    /// it needs no entry.
    Listed(Vec<Site>),
}

/// A name of the door with the scheme its callers use: the origin of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    scheme: Scheme,
    authority: String,
}

/// How a door is spoken to, as its callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain.
    Http,
    /// TLS, ours or a proxy's.
    Https,
}

impl Hosts {
    /// A door at `listening`: its loopback names, and `public` as a proxy or a certificate has them.
    pub fn listed(listening: SocketAddr, scheme: Scheme, public: impl IntoIterator<Item = Site>) -> Self {
        let port = listening.port();
        let loopback = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string(),
            format!("localhost:{port}"),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)).to_string(),
        ];
        let own = loopback.into_iter().map(|authority| Site { scheme, authority });
        Self::Listed(own.chain(public).collect())
    }

    /// The site the request is for; none where names are ignored.
    pub(super) fn site(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        dialled: Option<Caller>,
    ) -> Result<Option<Site>, Refusal> {
        let listed = match self {
            Hosts::Ignored => return Ok(None),
            Hosts::Listed(listed) => listed,
        };
        let mut lines = headers.get_all(HOST).iter();
        let (Some(host), None) = (lines.next(), lines.next()) else {
            return Err(Refusal::new(ErrorCode::InvalidRequest, "The request needs one Host line."));
        };
        let host = host.as_bytes();
        // A request line may name its own authority, and then that one counts for other readers.
        let same = uri.authority().is_none_or(|asked| asked.as_str().as_bytes().eq_ignore_ascii_case(host));
        let dialled = dialled.and_then(|caller| Site::dialled(caller, listed));
        let site = listed.iter().chain(&dialled).find(|site| site.is_host(host));
        match site {
            Some(site) if same => Ok(Some(site.clone())),
            Some(_) | None => Err(Refusal::plain(ErrorCode::HostRefused)),
        }
    }
}

impl Site {
    /// The site of a URL such as `https://post.example.org/anything`; `None` when it is no http or https URL
    /// with a host.
    pub fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let scheme = Scheme::parse(uri.scheme_str()?)?;
        let authority = uri.authority()?;
        // Browsers leave the scheme's own port out of Host and Origin.
        let shown = match authority.port_u16() {
            Some(port) if port != scheme.port() => format!("{}:{port}", authority.host()),
            Some(_) | None => authority.host().to_owned(),
        };
        let plain = !authority.as_str().contains('@') && !shown.is_empty();
        plain.then(|| Site { scheme, authority: shown.to_ascii_lowercase() })
    }

    fn dialled(caller: Caller, listed: &[Site]) -> Option<Self> {
        match caller {
            Caller::Tcp { local, .. } => {
                let scheme = listed.first()?.scheme;
                let address = SocketAddr::new(local.ip().to_canonical(), local.port());
                let shown =
                    if address.port() == scheme.port() { host_of(address) } else { address.to_string() };
                Some(Self { scheme, authority: shown })
            }
            Caller::Unix { .. } => None,
        }
    }

    fn is_host(&self, host: &[u8]) -> bool {
        self.authority.as_bytes().eq_ignore_ascii_case(host)
    }

    pub(super) fn is_origin(&self, origin: &[u8]) -> bool {
        origin.split_at_checked(self.scheme.prefix().len()).is_some_and(|(scheme, authority)| {
            scheme == self.scheme.prefix().as_bytes() && self.authority.as_bytes() == authority
        })
    }
}

impl Scheme {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "http" => Some(Scheme::Http),
            "https" => Some(Scheme::Https),
            _ => None,
        }
    }

    /// The port nobody writes.
    pub(crate) const fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// What an address begins with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Scheme::Http => "http://",
            Scheme::Https => "https://",
        }
    }
}

fn host_of(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn door() -> Hosts {
        let public = Site::of_url("https://post.example.org/").unwrap();
        Hosts::listed("127.0.0.1:7440".parse().unwrap(), Scheme::Http, [public])
    }

    fn asked(lines: &[&'static str], uri: &'static str) -> Result<Option<Site>, Refusal> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(HOST, HeaderValue::from_static(line));
        }
        let caller = Caller::Tcp {
            remote: "10.0.0.9:1234".parse().unwrap(),
            local: "[::ffff:10.0.0.7]:7440".parse().unwrap(),
        };
        door().site(&headers, &Uri::from_static(uri), Some(caller))
    }

    #[test]
    fn a_door_answers_to_its_own_names_and_the_address_dialled() {
        let names = ["127.0.0.1:7440", "localhost:7440", "LOCALHOST:7440", "[::1]:7440"];
        for host in names.into_iter().chain(["post.example.org", "10.0.0.7:7440"]) {
            assert!(asked(&[host], "/").is_ok(), "{host}");
        }
        assert!(asked(&["localhost:7440"], "http://localhost:7440/x").is_ok());
    }

    #[test]
    fn a_door_answers_to_no_other_name() {
        let refused = |lines: &[&'static str], uri, code| {
            assert_eq!(asked(lines, uri).unwrap_err().refused().code, code, "{lines:?} {uri}");
        };
        for host in [
            "evil.com",
            "evil.com:7440",
            "127.0.0.1.evil.com:7440",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:7441",
            "127.0.0.1:7440:7440",
            "127.0.0.2:7440",
            "post.example.org:443",
            "10.0.0.8:7440",
            " 127.0.0.1:7440",
            "",
        ] {
            refused(&[host], "/", ErrorCode::HostRefused);
        }
        refused(&["localhost:7440"], "http://evil.com/x", ErrorCode::HostRefused);
        refused(&[], "/", ErrorCode::InvalidRequest);
        refused(&["localhost:7440", "localhost:7440"], "/", ErrorCode::InvalidRequest);
        refused(&["localhost:7440", "evil.com"], "/", ErrorCode::InvalidRequest);
    }

    #[test]
    fn an_origin_is_the_scheme_and_the_name_of_the_site_asked() {
        let local = asked(&["127.0.0.1:7440"], "/").unwrap().unwrap();
        let public = asked(&["post.example.org"], "/").unwrap().unwrap();
        for (site, origin, own) in [
            (&local, "http://127.0.0.1:7440", true),
            (&local, "http://localhost:7440", false),
            (&local, "https://127.0.0.1:7440", false),
            (&local, "http://127.0.0.1:7440/", false),
            (&local, "http://localhost.evil", false),
            (&local, "null", false),
            (&local, "", false),
            (&public, "https://post.example.org", true),
            (&public, "http://post.example.org", false),
        ] {
            assert_eq!(site.is_origin(origin.as_bytes()), own, "{origin:?} at {site:?}");
        }
    }

    #[test]
    fn a_public_name_comes_from_an_http_url_alone() {
        let shown = |url| Site::of_url(url).map(|site| site.authority);
        assert_eq!(shown("https://Post.Example.org:443/x").as_deref(), Some("post.example.org"));
        assert_eq!(shown("http://post.example.org:8080").as_deref(), Some("post.example.org:8080"));
        for bad in ["", "post.example.org", "ftp://a.b", "https://user@a.b/", "/path"] {
            assert_eq!(shown(bad), None, "{bad}");
        }
    }
}
