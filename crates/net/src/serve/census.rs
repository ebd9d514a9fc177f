//! Who is in: connections of one door, and those of an address that have not proven who they are.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The count of one door.
pub(super) struct Census {
    connections_max: usize,
    strangers_max: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: usize,
    strangers: HashMap<IpAddr, usize>,
}

/// One connection's place; given back when it is dropped.
pub(super) struct Place {
    census: Arc<Census>,
    stranger: Mutex<Option<IpAddr>>,
}

impl Census {
    pub(super) fn new(connections_max: usize, strangers_max: usize) -> Arc<Self> {
        Arc::new(Self { connections_max, strangers_max, counts: Mutex::default() })
    }

    /// A place for a connection, or `None` when its bound is reached. `address` is absent where the
    /// operating system already vouched for the caller.
    pub(super) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        let stranger = address.map(|address| address.to_canonical());
        let mut counts = self.counts();
        if counts.connections >= self.connections_max {
            return None;
        }
        if let Some(address) = stranger {
            let strangers = counts.strangers.entry(address).or_default();
            if *strangers >= self.strangers_max {
                return None;
            }
            *strangers += 1;
        }
        counts.connections += 1;
        drop(counts);
        Some(Place { census: self.clone(), stranger: Mutex::new(stranger) })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Every change under the lock is complete before anything can panic.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn known(&mut self, address: IpAddr) {
        if let Some(strangers) = self.strangers.get_mut(&address) {
            *strangers -= 1;
            if *strangers == 0 {
                self.strangers.remove(&address);
            }
        }
    }
}

impl Place {
    /// The connection proved who it is: it no longer counts against its address.
    pub(super) fn authenticated(&self) {
        let stranger = self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(address) = stranger {
            self.census.counts().known(address);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.authenticated();
        self.census.counts().connections -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    #[test]
    fn a_door_has_so_many_places_and_a_place_given_back_is_free_again() {
        let census = Census::new(2, 9);
        let (first, _second) = (census.admit(None).unwrap(), census.admit(HERE).unwrap());
        assert!(census.admit(None).is_none());
        drop(first);
        assert!(census.admit(None).is_some());
    }

    #[test]
    fn strangers_are_bounded_per_address_and_those_who_proved_themselves_do_not_count() {
        let census = Census::new(99, 2);
        let places = [census.admit(HERE).unwrap(), census.admit(HERE).unwrap()];
        assert!(census.admit(HERE).is_none(), "a third stranger of one address");
        assert!(census.admit(Some("::ffff:127.0.0.1".parse().unwrap())).is_none(), "another spelling of it");
        assert!(census.admit(Some("10.0.0.9".parse().unwrap())).is_some(), "another address");
        places[0].authenticated();
        places[0].authenticated();
        let third = census.admit(HERE).unwrap();
        assert!(census.admit(HERE).is_none(), "proving it twice frees one place");
        drop((places, third));
        assert!(census.counts().strangers.is_empty(), "addresses are forgotten");
        assert_eq!(census.counts().connections, 0);
    }
}
