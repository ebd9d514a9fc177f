//! The local door's token: made once, kept in its file, replaced on demand. The one before is taken for a little
//! longer, so that a caller that just read it is not turned away.

use std::io;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use model::{Clock, Entropy};
use net::{Secret, TokenHash};

use crate::home::{Home, write_durably};

/// How long the token before is still taken.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// What the door compares with.
pub(crate) struct LocalToken(RwLock<Taken>);

struct Taken {
    now: TokenHash,
    /// With the monotonic time it ends at.
    before: Option<(TokenHash, Duration)>,
}

impl LocalToken {
    /// The token in the home's file, or a new one.
    pub(crate) fn load_or_create(home: &Home, entropy: &dyn Entropy) -> io::Result<Self> {
        let token = match home.read_token() {
            Ok(token) if !token.reveal().is_empty() => token,
            Ok(_) => write_new(home, entropy)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => write_new(home, entropy)?,
            Err(error) => return Err(error),
        };
        Ok(Self(RwLock::new(Taken { now: token.token_hash(), before: None })))
    }

    /// Whether `token` opens the door now.
    pub(crate) fn opens(&self, token: &Secret, clock: &dyn Clock) -> bool {
        let taken = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let before = taken.before.is_some_and(|(hash, until)| {
            // Compared in any case, so that the time it takes says nothing.
            hash.matches(token.reveal()) & (clock.monotonic() < until)
        });
        taken.now.matches(token.reveal()) | before
    }

    /// Replaces the token; the old one is taken for [`GRACE`].
    pub(crate) fn rotate(&self, home: &Home, clock: &dyn Clock, entropy: &dyn Entropy) -> io::Result<()> {
        let new = write_new(home, entropy)?;
        let mut taken = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut taken.now, new.token_hash());
        taken.before = Some((before, clock.monotonic() + GRACE));
        Ok(())
    }
}

fn write_new(home: &Home, entropy: &dyn Entropy) -> io::Result<Secret> {
    let token = Secret::mint(entropy);
    write_durably(&home.local_token(), token.reveal().as_bytes(), 0o600)?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{OsEntropy, Timestamp};
    use testkit::ManualClock;

    #[test]
    fn a_replaced_token_is_taken_for_a_minute_and_the_new_one_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        home.prepare().unwrap();
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let token = LocalToken::load_or_create(&home, &OsEntropy).unwrap();
        let first = home.read_token().unwrap();
        assert!(token.opens(&first, &clock));
        token.rotate(&home, &clock, &OsEntropy).unwrap();
        let second = home.read_token().unwrap();
        assert_ne!(first.reveal(), second.reveal());
        assert!(token.opens(&first, &clock) && token.opens(&second, &clock));
        clock.advance(GRACE);
        assert!(!token.opens(&first, &clock) && token.opens(&second, &clock));
        let restarted = LocalToken::load_or_create(&home, &OsEntropy).unwrap();
        assert!(restarted.opens(&second, &clock));
        assert!(!restarted.opens(&Secret::from(String::new()), &clock));
    }
}
