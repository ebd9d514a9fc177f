//! Every cell of the outbox tables.

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn fingerprint(byte: u8) -> Fingerprint {
    Fingerprint::from_bytes([byte; 32])
}

fn receipt() -> BrokerReceipt {
    BrokerReceipt {
        broker_message_id: MessageId::from_bytes([7; 16]),
        conversation: ConversationId::from_bytes([8; 16]),
        history_id: 96,
        accepted_at: Timestamp::from_micros(5),
    }
}

fn states() -> [OutboxState; 5] {
    [
        OutboxState::Pending,
        OutboxState::Inflight { lease: LeaseToken::from_bytes([1; 16]) },
        OutboxState::Done { receipt: receipt() },
        OutboxState::Dead {
            reason: DeadReason::Rejected,
            outcome: Outcome::Unknown,
            last_error: Some("413 too_large".into()),
        },
        OutboxState::Aborted { by: AbortedBy::Operator, outcome: Outcome::Unknown, successor: None },
    ]
}

#[test]
fn the_accept_table_holds_in_all_eleven_cells() {
    assert_eq!(decide(None, &fingerprint(1)), Verdict::Insert);
    let expected: [(Option<Verdict>, &str); 5] = [
        (Some(Verdict::Queued), "outbox_pending_fingerprint_mismatch"),
        (Some(Verdict::Inflight), "outbox_inflight_fingerprint_mismatch"),
        (Some(Verdict::Duplicate(receipt())), "outbox_done_fingerprint_mismatch"),
        (None, "outbox_dead_fingerprint_mismatch"),
        (None, "outbox_aborted_fingerprint_mismatch"),
    ];
    for (state, (on_match, on_mismatch)) in states().into_iter().zip(expected) {
        let status = state.status();
        let found = Found { fingerprint: fingerprint(1), state };
        match (on_match, decide(Some(&found), &fingerprint(1))) {
            (Some(expected), verdict) => assert_eq!(verdict, expected),
            (None, Verdict::Conflict(conflict)) => {
                assert_eq!(conflict.text(), format!("outbox_{status}_fingerprint_match"));
                assert_eq!(conflict.reason.as_deref(), (status == Status::Dead).then_some("413 too_large"));
            }
            (None, other) => panic!("{status} with the same message must be a conflict, was {other:?}"),
        }
        let Verdict::Conflict(conflict) = decide(Some(&found), &fingerprint(2)) else {
            panic!("{status} with another message must be a conflict")
        };
        assert_eq!(conflict.text(), on_mismatch);
        assert_eq!(conflict.fingerprint, fingerprint(1), "the answer names what the row was asked");
        let accepted = (status == Status::Done).then_some(receipt().broker_message_id);
        assert_eq!(conflict.broker_message_id, accepted);
        assert_eq!(conflict.reason, None);
    }
}

#[test]
fn a_dead_row_without_a_recorded_answer_says_unknown() {
    let state = OutboxState::Dead { reason: DeadReason::Poison, outcome: Outcome::Unknown, last_error: None };
    let found = Found { fingerprint: fingerprint(1), state };
    let Verdict::Conflict(conflict) = decide(Some(&found), &fingerprint(1)) else { panic!("a conflict") };
    assert_eq!(conflict.reason.as_deref(), Some("unknown"));
}

#[test]
fn a_claim_fixes_the_first_attempt_and_ends_rows_whose_time_is_over() {
    let at = |hours: u64| Timestamp::from_micros(0) + HOUR * u32::try_from(hours).unwrap();
    let age = 144 * HOUR;
    for (first, deliver_by, now, expected) in [
        (None, None, at(10), Claim::Go { first_attempt_at: at(10), send_deadline: at(154) }),
        (Some(at(3)), None, at(10), Claim::Go { first_attempt_at: at(3), send_deadline: at(147) }),
        (Some(at(3)), None, at(147), Claim::GiveUp(DeadReason::MaxAge, Outcome::Unknown)),
        (None, Some(at(10)), at(10), Claim::GiveUp(DeadReason::DeliverBy, Outcome::NotSent)),
        (Some(at(3)), Some(at(9)), at(10), Claim::GiveUp(DeadReason::DeliverBy, Outcome::Unknown)),
        (None, Some(at(11)), at(10), Claim::Go { first_attempt_at: at(10), send_deadline: at(154) }),
        // Never attempted rows have no age: a laptop may stay shut for a year.
        (None, None, at(9000), Claim::Go { first_attempt_at: at(9000), send_deadline: at(9144) }),
    ] {
        assert_eq!(claim(first, deliver_by, now, age), expected, "{first:?} {deliver_by:?} {now}");
    }
}

#[test]
fn an_accepted_row_goes_again_with_its_age_counted_from_its_acceptance() {
    let at = |hours: u32| Timestamp::from_micros(0) + HOUR * hours;
    let again = Redrive::Again { first_attempt_at: at(3) };
    for (deliver_by, now, expected) in [
        (None, at(10), again),
        (None, at(146), again),
        (None, at(147), Redrive::Leave),
        (Some(at(11)), at(10), again),
        (Some(at(10)), at(10), Redrive::Leave),
    ] {
        assert_eq!(redrive(at(3), deliver_by, now, 144 * HOUR), expected, "{deliver_by:?} {now}");
    }
}

#[test]
fn a_positive_answer_is_truth_from_any_state_with_or_without_the_lease() {
    for holds_lease in [true, false] {
        for (status, expected) in [
            (Status::Pending, Move::Done(receipt())),
            (Status::Inflight, Move::Done(receipt())),
            (Status::Dead, Move::Done(receipt())),
            (Status::Aborted, Move::LateAck(receipt())),
            (Status::Done, Move::Nothing),
        ] {
            assert_eq!(
                settle(status, holds_lease, Answer::Accepted(receipt()), Patience::default()),
                expected,
                "{status}"
            );
        }
    }
}

#[test]
fn any_other_answer_moves_only_the_row_its_lease_holds() {
    let answers = [Answer::Refused(ErrorCode::TooLarge), Answer::NotTried, Answer::Lost];
    for answer in answers {
        for status in Status::ALL {
            for holds_lease in [true, false] {
                let outcome = settle(*status, holds_lease, answer, Patience::default());
                if *status == Status::Inflight && holds_lease {
                    assert_ne!(outcome, Move::Nothing, "{answer:?}");
                } else {
                    assert_eq!(outcome, Move::Nothing, "{status} {holds_lease} {answer:?}");
                }
            }
        }
    }
}

#[test]
fn each_code_buries_retries_or_waits_as_its_class_says() {
    let fresh = Patience { attempts: 1, tried_for: Duration::ZERO, gone_for: Some(Duration::ZERO) };
    let spent = Patience { attempts: 50, tried_for: 24 * HOUR, gone_for: Some(HOUR) };
    for code in ErrorCode::ALL {
        let answer = Answer::Refused(*code);
        let (early, late) =
            (settle(Status::Inflight, true, answer, fresh), settle(Status::Inflight, true, answer, spent));
        match code.class() {
            Class::Permanent => {
                assert_eq!(early, Move::Bury(dead_reason(*code), Outcome::Unknown), "{code}");
                assert_eq!(late, early, "{code}");
            }
            Class::Conditional => {
                assert_eq!(early, Move::Retry, "{code}");
                assert_eq!(late, Move::Bury(DeadReason::DestinationGone, Outcome::Unknown), "{code}");
            }
            Class::Transient => {
                let poison = Move::Bury(DeadReason::Poison, Outcome::Unknown);
                assert_eq!(early, Move::Retry, "{code}");
                assert_eq!(late, if *code == ErrorCode::Internal { poison } else { Move::Retry }, "{code}");
            }
        }
    }
    assert_eq!(settle(Status::Inflight, true, Answer::NotTried, spent), Move::Release);
    assert_eq!(settle(Status::Inflight, true, Answer::Lost, spent), Move::Retry);
}

#[test]
fn poison_needs_both_many_tries_and_a_long_time() {
    let answer = Answer::Refused(ErrorCode::Internal);
    for (attempts, tried_for) in [(49, 24 * HOUR), (50, 24 * HOUR - Duration::from_secs(1))] {
        let patience = Patience { attempts, tried_for, gone_for: None };
        assert_eq!(settle(Status::Inflight, true, answer, patience), Move::Retry, "{attempts} {tried_for:?}");
    }
}

#[test]
fn the_brokers_word_on_an_ended_row_is_applied_in_every_cell() {
    let answers = [
        StatusAnswer::Accepted(receipt()),
        StatusAnswer::AcceptedOtherFingerprint,
        StatusAnswer::Retired,
        StatusAnswer::Absent,
        StatusAnswer::Unknown,
    ];
    for answer in answers {
        for status in Status::ALL {
            let expected = match (status, answer) {
                (Status::Dead, StatusAnswer::Accepted(receipt)) => Learnt::Done(receipt),
                (Status::Aborted, StatusAnswer::Accepted(receipt)) => Learnt::LateAck(receipt),
                (Status::Dead | Status::Aborted, StatusAnswer::Unknown) => Learnt::Final,
                (Status::Dead | Status::Aborted, _) => Learnt::NotAccepted,
                (Status::Pending | Status::Inflight | Status::Done, _) => Learnt::Nothing,
            };
            assert_eq!(learn(*status, answer), expected, "{status} {answer:?}");
        }
    }
}

#[test]
fn the_oldest_age_leaves_a_tenth_of_the_window_and_at_least_a_day() {
    for (days, hours) in [(7, 144), (14, 302), (30, 648), (90, 1944), (365, 7884)] {
        assert_eq!(max_age(DedupeWindow::Days(days)), hours * HOUR, "{days} days");
    }
    assert_eq!(max_age(DedupeWindow::Permanent), 168 * HOUR);
    assert_eq!(max_age(DedupeWindow::Days(0)), Duration::ZERO);
}

#[test]
fn each_dead_reason_has_its_receipt_word() {
    for (reason, word) in [
        (DeadReason::Rejected, "rejected"),
        (DeadReason::TooLarge, "rejected"),
        (DeadReason::FpConflict, "conflict"),
        (DeadReason::MaxAge, "expired"),
        (DeadReason::DeliverBy, "expired"),
        (DeadReason::DestinationGone, "dead"),
        (DeadReason::Revoked, "dead"),
        (DeadReason::Poison, "dead"),
    ] {
        assert_eq!(ended(reason).word(), word, "{reason}");
    }
    assert_eq!(DeadReason::ALL.len(), 8);
}

#[test]
fn permanent_codes_name_their_reason() {
    for (code, reason) in [
        (ErrorCode::TooLarge, DeadReason::TooLarge),
        (ErrorCode::IdempotencyKeyReused, DeadReason::FpConflict),
        (ErrorCode::SendDeadlinePassed, DeadReason::MaxAge),
        (ErrorCode::DeliverByPassed, DeadReason::DeliverBy),
        (ErrorCode::Revoked, DeadReason::Revoked),
        (ErrorCode::FingerprintInvalid, DeadReason::Rejected),
        (ErrorCode::IdRetired, DeadReason::Rejected),
        (ErrorCode::MentionUnknown, DeadReason::Rejected),
    ] {
        assert_eq!(dead_reason(code), reason, "{code}");
    }
}

#[test]
fn statuses_have_their_stored_numbers() {
    for (code, status) in Status::ALL.iter().enumerate() {
        assert_eq!(usize::from(status.code()), code);
        assert_eq!(Status::from_code(i64::try_from(code).unwrap()), Some(*status));
    }
    assert_eq!(Status::from_code(5), None);
    assert_eq!(Status::from_code(-1), None);
}
