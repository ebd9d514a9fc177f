//! An invite as people pass it on: `URL#i=TOKEN&k=ISSUER_KEY`. What follows `#` is never sent to a server by
//! accident: no client puts it into a request.

use std::fmt;
use std::str::FromStr;

use model::NodeKey;
use model::error::Malformed;

use crate::Secret;
use crate::client::Target;

const MALFORMED: Malformed =
    Malformed::new("invite", "an address as `postrider invite` prints it: URL#i=TOKEN&k=KEY, in quotes");

/// Where to join, with what, and whose answer to believe.
#[derive(Clone, Debug)]
pub struct Invite {
    /// The broker's fabric door, `http://` or `https://`, without a trailing slash.
    pub url: String,
    /// Single use.
    pub token: Secret,
    /// The key that must sign the answer.
    pub issuer_key: NodeKey,
}

impl Invite {
    /// The text to pass on. Not `Display`: it holds the token.
    pub fn to_text(&self) -> Secret {
        Secret::from(format!("{}#i={}&k={}", self.url, self.token.reveal(), self.issuer_key))
    }
}

impl FromStr for Invite {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let (url, fragment) = text.trim().split_once('#').ok_or(MALFORMED)?;
        let (token, key) = fragment.split_once('&').ok_or(MALFORMED)?;
        let token = token.strip_prefix("i=").filter(|token| is_token(token)).ok_or(MALFORMED)?;
        let key = key.strip_prefix("k=").ok_or(MALFORMED)?;
        Ok(Self {
            url: Target::of_url(url).map(|_| url.trim_end_matches('/').to_owned()).map_err(|_| MALFORMED)?,
            token: Secret::from(token.to_owned()),
            issuer_key: key.parse().map_err(|_| MALFORMED)?,
        })
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// For messages to people: where, not with what.
impl fmt::Display for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an invite to {}", self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invite_prints_and_parses_back() {
        let key = "ab".repeat(32);
        for url in [
            "http://127.0.0.1:7440",
            "https://post.example.org",
            "https://example.org/post",
            "http://[::1]:9",
        ] {
            let text = format!("{url}#i=T0k-en_&k={key}");
            let invite: Invite = text.parse().unwrap();
            assert_eq!((invite.url.as_str(), invite.token.reveal()), (url, "T0k-en_"));
            assert_eq!(invite.issuer_key.to_string(), key);
            assert_eq!(invite.to_text().reveal(), text);
        }
        let slashed: Invite = format!(" http://h:1/#i=T&k={key}\n").parse().unwrap();
        assert_eq!(slashed.url, "http://h:1");
    }

    #[test]
    fn anything_else_is_no_invite() {
        let key = "ab".repeat(32);
        for bad in [
            String::new(),
            "http://h:1".to_owned(),
            "http://h:1#i=T".to_owned(),
            format!("http://h:1#k={key}&i=T"),
            format!("http://h:1#i=&k={key}"),
            format!("http://h:1#i=a|b&k={key}"),
            format!("http://h:1#i=T&k={}", &key[1..]),
            format!("ftp://h:1#i=T&k={key}"),
            format!("h:1#i=T&k={key}"),
            format!("http://u:p@h:1#i=T&k={key}"),
            format!("http://h:1?x=1#i=T&k={key}"),
        ] {
            assert!(bad.parse::<Invite>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_invite_never_shows_its_token() {
        let invite: Invite = format!("http://h:1#i=SECRETSECRET&k={}", "ab".repeat(32)).parse().unwrap();
        assert!(!format!("{invite:?} {invite} {:?}", invite.to_text()).contains("SECRET"));
    }
}
