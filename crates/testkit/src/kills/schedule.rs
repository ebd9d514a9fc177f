//! Which deaths, in which order: decided by the seed before the first of them.

use super::{Commit, KillsError};
use crate::seeded::Seeded;
use std::collections::BTreeMap;
use std::time::Duration;

/// A life after its start lasts up to this before a random kill; a few dozen commits fit into it.
const LIFE_MAX: Duration = Duration::from_millis(300);
/// Of a hundred random kills, so many fall into the start.
const IN_START_PERCENT: u64 = 25;
/// The latest visit of a point at which the product dies: later ones only make lives longer.
const VISIT_MAX: u64 = 12;

/// One death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kill {
    /// At the n-th visit of a crash point.
    At { point: String, visit: u64 },
    /// By SIGKILL, so long after the process was started.
    After(Duration),
}

/// What a life that was only watched showed.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// How often each point was reached.
    pub points: BTreeMap<String, u64>,
    /// From the process's start to its open link.
    pub start: Duration,
}

/// The three commits first, before and after each; then every point in turn, alternating with random moments.
pub(super) fn all_points(watched: &Watched, kills: u64, seed: u64) -> Result<Vec<Kill>, KillsError> {
    let mut seeded = Seeded::new(seed);
    let doors: Vec<String> = Commit::ALL.into_iter().flat_map(Commit::points).collect();
    for door in &doors {
        if !watched.points.contains_key(door) {
            let reached: Vec<&str> = watched.points.keys().map(String::as_str).collect();
            return Err(KillsError::NotOnTheWalk(door.clone(), reached.join(", ")));
        }
    }
    let (mut others, again): (Vec<String>, Vec<String>) =
        watched.points.keys().cloned().partition(|point| !doors.contains(point));
    shuffle(&mut others, &mut seeded);
    // The doors come first of all; in the cycle they stand behind those that nothing has died at yet.
    let cycle: Vec<String> = others.into_iter().chain(again).collect();
    let mut points = doors.iter().chain(cycle.iter().cycle());
    let one = |n: u64| {
        // A random turn takes no point from the cycle; else every second point would never come.
        let random = n >= doors.len() as u64 && n % 2 == 1;
        let point = if random { None } else { points.next() };
        match point {
            Some(point) => at(point, watched, &mut seeded),
            None => after(watched, &mut seeded),
        }
    };
    Ok((0..kills).map(one).collect())
}

/// Deaths in the window that a planted bug opens before `commit`: at its point, and at random moments.
pub(super) fn around(commit: Commit, watched: &Watched, kills: u64, seed: u64) -> Vec<Kill> {
    let mut seeded = Seeded::new(seed);
    let [before, _] = commit.points();
    let one = |n: u64| {
        if n.is_multiple_of(2) { at(&before, watched, &mut seeded) } else { after(watched, &mut seeded) }
    };
    (0..kills).map(one).collect()
}

fn at(point: &str, watched: &Watched, seeded: &mut Seeded) -> Kill {
    let visits = watched.points.get(point).copied().unwrap_or(1).clamp(1, VISIT_MAX);
    Kill::At { point: point.to_owned(), visit: 1 + seeded.below(visits) }
}

fn after(watched: &Watched, seeded: &mut Seeded) -> Kill {
    let within = |bound: Duration, seeded: &mut Seeded| {
        let micros = u64::try_from(bound.as_micros()).expect("a life lasts less than 584,000 years");
        Duration::from_micros(seeded.below(micros.max(1)))
    };
    Kill::After(if seeded.chance(IN_START_PERCENT) {
        within(watched.start, seeded)
    } else {
        watched.start + within(LIFE_MAX, seeded)
    })
}

fn shuffle(points: &mut [String], seeded: &mut Seeded) {
    for last in (1..points.len()).rev() {
        points.swap(last, seeded.index(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> Watched {
        let doors = Commit::ALL.into_iter().flat_map(Commit::points);
        let others = ["mailbox.claim.before_commit", "ledger.redeem.after_commit"].map(str::to_owned);
        let points = doors.chain(others).map(|point| (point, 5)).collect();
        Watched { points, start: Duration::from_millis(80) }
    }

    fn points_of(schedule: &[Kill]) -> Vec<&str> {
        schedule
            .iter()
            .filter_map(|kill| match kill {
                Kill::At { point, .. } => Some(point.as_str()),
                Kill::After(_) => None,
            })
            .collect()
    }

    #[test]
    fn the_three_commits_come_first_before_and_after_each() {
        let schedule = all_points(&watched(), 6, 1).unwrap();
        let doors: Vec<String> = Commit::ALL.into_iter().flat_map(Commit::points).collect();
        assert_eq!(points_of(&schedule), doors);
    }

    #[test]
    fn a_long_schedule_dies_at_every_point_and_half_the_time_at_random() {
        let schedule = all_points(&watched(), 26, 1).unwrap();
        assert_eq!(schedule.len(), 26);
        let points = points_of(&schedule);
        assert_eq!(points.len(), 6 + 10);
        assert!(watched().points.keys().all(|point| points.contains(&point.as_str())), "{points:?}");
    }

    #[test]
    fn one_seed_gives_one_schedule_and_another_seed_another() {
        let of = |seed| all_points(&watched(), 40, seed).unwrap();
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }

    #[test]
    fn visits_are_visits_the_watched_life_made() {
        for kill in all_points(&watched(), 200, 9).unwrap() {
            match kill {
                Kill::At { visit, .. } => assert!((1..=5).contains(&visit), "{visit}"),
                Kill::After(moment) => assert!(moment < watched().start + LIFE_MAX, "{moment:?}"),
            }
        }
    }

    #[test]
    fn a_walk_that_lacks_a_commit_is_refused() {
        let mut watched = watched();
        watched.points.remove("ledger.accept.before_commit");
        assert!(matches!(all_points(&watched, 20, 1), Err(KillsError::NotOnTheWalk(point, _))
            if point == "ledger.accept.before_commit"));
    }
}
