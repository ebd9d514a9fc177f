//! The address of a webhook, read strictly: a text that two readers could understand differently is refused.
//!
//! - `http` and `https` only; no name and password, no fragment, no backslash, nothing but visible ASCII.
//! - A host is a DNS name or an address in its one usual form. Other spellings of numbers (`0177.1`, `2130706433`,
//!   `0x7f.1`) are refused, because resolvers disagree on them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::error::Malformed;
use crate::limits::WEBHOOK_URL_BYTES_MAX;

/// How to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain.
    Http,
    /// TLS.
    Https,
}

/// Where, before anything was resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A DNS name: lower case, without a last dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Where a webhook goes.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    scheme: Scheme,
    host: Host,
    port: Option<u16>,
    /// Path and query, beginning with a slash.
    target: String,
}

const fn malformed(expected: &'static str) -> Malformed {
    Malformed::new("url", expected)
}

const FORM: Malformed = malformed("an address such as https://example.org/hook");
const HOST: Malformed = malformed("an address whose host is a DNS name, a.b.c.d or [IPv6]");
const HOST_ALONE: Malformed = Malformed::new("host", "a DNS name, a.b.c.d or [IPv6]");

impl WebhookUrl {
    /// How to speak.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Where.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port to dial.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        })
    }

    /// Path and query of the request.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The `Host` header: without the port when it is the scheme's own.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }
}

impl FromStr for WebhookUrl {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        if text.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(malformed("an address of at most 2048 bytes"));
        }
        let visible = |b: u8| {
            b.is_ascii_graphic()
                && !matches!(b, b'\\' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}')
        };
        if !text.bytes().all(visible) {
            return Err(malformed("an address of plain ASCII; write other characters percent-encoded"));
        }
        if text.contains('#') {
            return Err(malformed("an address without a fragment"));
        }
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(malformed("an http or https address")),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(malformed("an address without a name or password"));
        }
        let (host, port) = split_port(authority)?;
        let own = match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(Self {
            scheme,
            host: host.parse().map_err(|_| HOST)?,
            port: port.filter(|port| *port != own),
            target,
        })
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), Malformed> {
    let in_brackets = authority.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = authority[in_brackets..].find(':') else { return Ok((authority, None)) };
    let (host, port) = authority.split_at(in_brackets + colon);
    let digits = &port[1..];
    let port =
        digits.parse::<u16>().ok().filter(|port| *port > 0 && digits.bytes().all(|b| b.is_ascii_digit()));
    Ok((host, Some(port.ok_or(malformed("an address whose port is 1 to 65535"))?)))
}

impl FromStr for Host {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inside
                .parse::<Ipv6Addr>()
                .map(|address| Host::Address(address.into()))
                .map_err(|_| HOST_ALONE);
        }
        // Only four plain decimal numbers parse: a leading zero would be octal to some readers.
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let last = name.rsplit('.').next().unwrap_or_default();
        let numeric = last.starts_with(|c: char| c.is_ascii_digit())
            && (last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x"));
        if numeric || name.len() > 253 || !name.split('.').all(is_label) {
            return Err(HOST_ALONE);
        }
        Ok(Host::Name(name))
    }
}

/// Underscores are no host name's, yet DNS carries them and private zones use them.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.target)
    }
}

/// Without path and query: providers put secrets there.
impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({}/..)", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_has_one_spelling_after_it_was_read() {
        for (text, spelling) in [
            ("https://example.org/hook", "https://example.org/hook"),
            ("HTTPS://Example.ORG./hook?a=b&c", "https://example.org/hook?a=b&c"),
            ("https://example.org", "https://example.org/"),
            ("https://example.org?x", "https://example.org/?x"),
            ("https://example.org:443/", "https://example.org/"),
            ("http://example.org:80/", "http://example.org/"),
            ("http://example.org:443/", "http://example.org:443/"),
            ("http://8.8.8.8:8080/x@y", "http://8.8.8.8:8080/x@y"),
            ("http://[2606:4700:0:0::1]:99/", "http://[2606:4700::1]:99/"),
            ("http://[::ffff:127.0.0.1]/", "http://[::ffff:127.0.0.1]/"),
            ("http://4ever.example/", "http://4ever.example/"),
            ("http://my_host/", "http://my_host/"),
        ] {
            let url: WebhookUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), spelling, "{text}");
            assert_eq!(spelling.parse(), Ok(url));
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "",
            "example.org",
            "//example.org/",
            "ftp://example.org/",
            "gopher://example.org/",
            "file:///etc/passwd",
            "javascript://example.org/",
            "https://user@example.org/",
            "https://user:pass@example.org/",
            "https://example.org@127.0.0.1/",
            "https://example.org#@127.0.0.1/",
            "https://example.org\\@127.0.0.1/",
            "https://example.org/a b",
            "https://example.org/\r\nx: y",
            "https://ex\u{e4}mple.org/",
            "https://example.org/\u{202e}",
            "http://0177.1/",
            "http://0177.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://a.0x/",
            "http://127.1/",
            "http://127.0.0.1.5/",
            "http://1.2.3.256/",
            "http://256/",
            "http://[::1",
            "http://::1/",
            "http://[fe80::1%25eth0]/",
            "http://[127.0.0.1]/",
            "http://[]/",
            "http:///x",
            "http://./",
            "http://a..b/",
            "http://-a.example/",
            "http://%31%32%37.0.0.1/",
            "http://example.org:/",
            "http://example.org:0/",
            "http://example.org:65536/",
            "http://example.org:+80/",
            "http://example.org:80:80/",
        ] {
            assert!(text.parse::<WebhookUrl>().is_err(), "{text}");
        }
        let long = format!("https://example.org/{}", "x".repeat(WEBHOOK_URL_BYTES_MAX));
        assert!(long.parse::<WebhookUrl>().is_err());
    }

    #[test]
    fn a_log_line_shows_the_host_and_not_the_path() {
        let url: WebhookUrl = "https://hooks.example/services/T0/S3CRET?k=S3CRET".parse().unwrap();
        assert_eq!(format!("{url:?}"), "WebhookUrl(hooks.example/..)");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader_and_what_it_reads_stays(text in "(https?://)?[ -~]{0,40}") {
            if let Ok(url) = text.parse::<WebhookUrl>() {
                prop_assert_eq!(url.to_string().parse::<WebhookUrl>(), Ok(url));
            }
        }
    }
}
