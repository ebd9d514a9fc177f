//! The two budgets in memory.
//!
//! - Both are checked before either is charged, under both locks; the member's is always taken first.
//! - A spender whose budget is whole again needs no entry: sweeps drop it, so memory follows who spends.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::gcra::{self, Decision, TooSoon};
use model::limits::LIMITER_MEMBERS_MAX;
use model::{MemberId, MeshId};

use super::Budgets;

const SHARDS: usize = 16;

/// Who spends, of what, and when.
#[derive(Clone, Copy)]
pub(super) struct Purchase {
    pub mesh: MeshId,
    pub member: MemberId,
    pub units: u32,
    pub now: Duration,
}

pub(super) struct Buckets {
    budgets: Budgets,
    members: [Mutex<Arrivals<(MeshId, MemberId)>>; SHARDS],
    meshes: Mutex<Arrivals<MeshId>>,
}

/// The state of every spender whose budget is not whole.
struct Arrivals<K> {
    arrivals: HashMap<K, Duration>,
    entries_max: usize,
    sweep_every: Duration,
    sweep_at: Duration,
}

impl Buckets {
    pub(super) fn new(budgets: Budgets) -> Self {
        let per_shard = LIMITER_MEMBERS_MAX / SHARDS;
        Self {
            budgets,
            members: std::array::from_fn(|_| Mutex::new(Arrivals::new(per_shard, budgets.member.period()))),
            meshes: Mutex::new(Arrivals::new(per_shard, budgets.mesh.period())),
        }
    }

    /// Charges both budgets, or neither.
    pub(super) fn spend(&self, purchase: &Purchase) -> Result<(), TooSoon> {
        let Purchase { mesh, member, units, now } = *purchase;
        let (mut members, mut meshes) = self.lock(purchase);
        let of_member = gcra::spend(members.of(&(mesh, member)), now, &self.budgets.member, units);
        let of_mesh = gcra::spend(meshes.of(&mesh), now, &self.budgets.mesh, units);
        match (of_member, of_mesh) {
            (Decision::Conforming { arrival: member_arrival }, Decision::Conforming { arrival }) => {
                members.store((mesh, member), member_arrival, now);
                meshes.store(mesh, arrival, now);
                Ok(())
            }
            (Decision::TooSoon(refusal), Decision::Conforming { .. })
            | (Decision::Conforming { .. }, Decision::TooSoon(refusal)) => Err(refusal),
            (Decision::TooSoon(one), Decision::TooSoon(other)) => {
                Err(TooSoon { retry_after: one.retry_after.max(other.retry_after) })
            }
        }
    }

    /// Charges both for what was granted elsewhere.
    pub(super) fn charge(&self, purchase: &Purchase) {
        let Purchase { mesh, member, units, now } = *purchase;
        let (mut members, mut meshes) = self.lock(purchase);
        let arrival = gcra::charge(members.of(&(mesh, member)), now, &self.budgets.member, units);
        members.store((mesh, member), arrival, now);
        let arrival = gcra::charge(meshes.of(&mesh), now, &self.budgets.mesh, units);
        meshes.store(mesh, arrival, now);
    }

    #[expect(clippy::type_complexity, reason = "two guards, in the one order they may be taken")]
    fn lock(
        &self,
        purchase: &Purchase,
    ) -> (MutexGuard<'_, Arrivals<(MeshId, MemberId)>>, MutexGuard<'_, Arrivals<MeshId>>) {
        // The last byte of a UUIDv7 is random; the first ones are its time.
        let shard = usize::from(purchase.member.as_bytes()[15]) % SHARDS;
        let members = self.members[shard].lock().unwrap_or_else(PoisonError::into_inner);
        (members, self.meshes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<K: Copy + Eq + Hash> Arrivals<K> {
    fn new(entries_max: usize, sweep_every: Duration) -> Self {
        Self { arrivals: HashMap::new(), entries_max, sweep_every, sweep_at: sweep_every }
    }

    fn of(&self, spender: &K) -> Duration {
        self.arrivals.get(spender).copied().unwrap_or(Duration::ZERO)
    }

    fn store(&mut self, spender: K, arrival: Duration, now: Duration) {
        if now >= self.sweep_at {
            self.sweep(now);
        }
        if !self.arrivals.contains_key(&spender) && self.arrivals.len() >= self.entries_max {
            self.make_room(now);
        }
        self.arrivals.insert(spender, arrival);
    }

    fn sweep(&mut self, now: Duration) {
        self.arrivals.retain(|_, arrival| *arrival > now);
        self.sweep_at = now + self.sweep_every;
    }

    /// Drops whoever is whole again; if nobody is, the one nearest to it, which gains the least by being forgotten.
    fn make_room(&mut self, now: Duration) {
        self.sweep(now);
        if self.arrivals.len() >= self.entries_max {
            let nearest =
                self.arrivals.iter().min_by_key(|(_, arrival)| **arrival).map(|(spender, _)| *spender);
            if let Some(spender) = nearest {
                self.arrivals.remove(&spender);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals() -> Arrivals<u8> {
        Arrivals::new(2, Duration::from_secs(10))
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_sweep_keeps_only_those_who_still_owe_time() {
        let mut arrivals = arrivals();
        arrivals.store(1, s(5), s(1));
        arrivals.store(2, s(30), s(2));
        assert_eq!(arrivals.arrivals.len(), 2);
        arrivals.store(2, s(31), s(10));
        assert_eq!((arrivals.of(&1), arrivals.of(&2)), (Duration::ZERO, s(31)));
        assert_eq!(arrivals.arrivals.len(), 1);
    }

    #[test]
    fn a_full_store_forgets_the_spender_nearest_to_a_whole_budget() {
        let mut arrivals = arrivals();
        for (spender, arrival) in [(1, 7), (2, 5), (3, 9)] {
            arrivals.store(spender, s(arrival), s(1));
        }
        assert_eq!([1, 2, 3].map(|spender| arrivals.of(&spender)), [s(7), Duration::ZERO, s(9)]);
    }
}
