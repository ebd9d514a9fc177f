//! What the broker makes of a frame: rows accepted or refused, questions answered.

use model::{
    Clock, ConversationId, Entropy, ErrorCode, MemberId, MemberKind, MessageId, OsEntropy, Timestamp,
};
use net::socket::{Close, Writer};
use serde_json::value::{RawValue, to_raw_value};
use wire::ask::{AnswerResult, MemberRow, Question, RecipientRung, StatusAnswer};
use wire::auth::MemberRef;
use wire::link::{
    AcceptedRow, Ack, Acked, Answer, Rows, Send as SendFrame, SendItem, SendOutcome, SendResult, Sent,
    ToBroker, ToNode,
};
use wire::{MessageFields, Refused};

use super::{Accepted, Books, Broker, Reply, SentFrame};

impl Broker {
    pub(super) fn hear(&self, frame: ToBroker, writer: &Writer) -> Option<ToNode> {
        let mut books = self.books();
        match frame {
            ToBroker::FeatureNegotiationRequest(_) => None,
            ToBroker::Answer(answer) => {
                books.answers_heard.push(answer);
                None
            }
            ToBroker::Send(send) => self.take(&mut books, send, writer),
            ToBroker::Ack(acks) => {
                let acked = |ack: &Ack| Acked { row: ack.row.clone(), read: ack.read_at.is_some() };
                let rows = acks.rows.iter().map(acked).collect();
                books.acks.extend(acks.rows);
                books.confirms.then_some(ToNode::Acked(Rows { rows }))
            }
            ToBroker::Nack(nacks) => {
                books.nacks.extend(nacks.rows);
                None
            }
            ToBroker::ReceiptsAck(acks) => {
                books.receipt_acks.extend(acks.rows);
                None
            }
            ToBroker::Ask(ask) => {
                let result = books.answer(ask.question);
                books.answers.then_some(ToNode::Answer(Answer { n: ask.n, result }))
            }
        }
    }

    fn take(&self, books: &mut Books, send: SendFrame, writer: &Writer) -> Option<ToNode> {
        let items: Vec<SendItem> =
            send.messages.iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect();
        let fields: Vec<MessageFields> =
            items.iter().map(|item| serde_json::from_str(item.message.get()).unwrap()).collect();
        books.sends.push(SentFrame {
            lane: (send.sender, fields[0].to.to_string()),
            ids: fields.iter().map(|fields| fields.client_message_id.to_string()).collect(),
            rows: items.iter().map(|item| item.row).collect(),
            deadlines: items.iter().map(|item| item.send_deadline).collect(),
        });
        let (mut results, mut stopped, mut silent) = (Vec::new(), false, false);
        for (item, fields) in items.into_iter().zip(fields) {
            let outcome = if stopped {
                SendOutcome::NotTried
            } else {
                let known = books.known(send.sender, &fields);
                match if known.is_some() { Reply::Accept } else { (books.script)(&fields) } {
                    Reply::Accept => books.accept(send.sender, &item, fields, self.inner.clock.now()),
                    Reply::AcceptSilently => {
                        silent = true;
                        books.accept(send.sender, &item, fields, self.inner.clock.now())
                    }
                    Reply::Silence => {
                        silent = true;
                        SendOutcome::NotTried
                    }
                    Reply::Close(code) => {
                        writer.close(Close::new(code, ""));
                        silent = true;
                        SendOutcome::NotTried
                    }
                    Reply::Refuse(code) => refused(code, None),
                    Reply::RefuseFor(code, wait_ms) => refused(code, Some(wait_ms)),
                }
            };
            if let SendOutcome::Refused { error, .. } = &outcome {
                let code = ErrorCode::parse(&error.error).unwrap();
                stopped |= code.class() != model::Class::Permanent;
            }
            results.push(SendResult { row: item.row, outcome });
        }
        (!silent).then_some(ToNode::Sent(Sent { n: send.n, results }))
    }
}

fn refused(code: ErrorCode, wait_ms: Option<u64>) -> SendOutcome {
    let mut refused = Refused::plain(code);
    if let Some(wait_ms) = wait_ms {
        refused = refused.with("retry_after_ms", wait_ms);
    }
    SendOutcome::Refused { status: wire::status::http_status(code), error: refused.into() }
}

impl Books {
    fn known(&self, sender: MemberId, fields: &MessageFields) -> Option<&Accepted> {
        let id = &fields.client_message_id;
        self.accepted.iter().find(|row| row.sender == sender && row.fields.client_message_id == *id)
    }

    fn accept(
        &mut self,
        sender: MemberId,
        item: &SendItem,
        fields: MessageFields,
        now: Timestamp,
    ) -> SendOutcome {
        if let Some(known) = self.known(sender, &fields) {
            let row = AcceptedRow { status: 200, duplicate: true, ..known.row.clone() };
            return SendOutcome::Accepted(row);
        }
        let row = AcceptedRow {
            status: 201,
            request_fingerprint: item.request_fingerprint,
            broker_message_id: MessageId::mint(now, &OsEntropy),
            conversation: ConversationId::from_bytes([7; 16]),
            history_id: self.accepted.len() as u64 + 1,
            created_at: now,
            duplicate: false,
            history_available: true,
        };
        self.accepted.push(Accepted { sender, fields, row: row.clone() });
        SendOutcome::Accepted(row)
    }

    fn answer(&mut self, question: Question) -> AnswerResult {
        self.questions.push(serde_json::to_string(&question).unwrap());
        match question {
            Question::MessageStatus { sender, client_message_id, request_fingerprint, fence, .. } => {
                let id = &client_message_id;
                let known = self
                    .accepted
                    .iter()
                    .find(|row| row.sender == sender && row.fields.client_message_id == *id);
                let status = match known {
                    Some(known) if known.row.request_fingerprint == request_fingerprint => {
                        StatusAnswer::Accepted(known.row.clone())
                    }
                    Some(_) => StatusAnswer::AcceptedOtherFingerprint,
                    None => {
                        assert!(fence, "the daemon asks with a fence");
                        self.retired.push((sender, client_message_id));
                        StatusAnswer::Absent
                    }
                };
                ok(&status)
            }
            Question::MemberRegister { name, kind } => {
                if name.as_str() == "elsewhere" {
                    let error = Refused::plain(ErrorCode::NameTaken).into();
                    return AnswerResult::Refused { status: 409, error };
                }
                let known = self.members.iter().find(|member| member.name == name).cloned();
                let member = known.unwrap_or_else(|| {
                    let mut random = [0; 16];
                    OsEntropy.fill(&mut random);
                    MemberRef { id: MemberId::from_bytes(random), name, kind: MemberKind::to_string(&kind) }
                });
                if self.members.iter().all(|known| known.id != member.id) {
                    self.members.push(member.clone());
                }
                ok(&MemberRow { member, home: Some("node".to_owned()), role: "member".to_owned() })
            }
            Question::Members => {
                let rows: Vec<MemberRow> = self
                    .members
                    .iter()
                    .map(|member| MemberRow { member: member.clone(), home: None, role: "member".to_owned() })
                    .collect();
                ok(&rows)
            }
            Question::Rungs { .. } => {
                let copies = self
                    .copies
                    .iter()
                    .map(|rung| RecipientRung { recipient: MemberId::from_bytes([9; 16]), rung: *rung });
                ok(&copies.collect::<Vec<_>>())
            }
            Question::TopicHistory { .. } => {
                ok(&serde_json::json!({"messages": [], "cursor": "", "before": "",
                "has_more": false}))
            }
            _ => ok(&serde_json::json!([])),
        }
    }
}

fn ok(value: &impl serde::Serialize) -> AnswerResult {
    let value: Box<RawValue> = to_raw_value(value).unwrap();
    AnswerResult::Ok(value)
}
