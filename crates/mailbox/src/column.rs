//! Model types as columns, and model words as stored numbers.
//!
//! - A number, once stored, never changes its meaning; the views spell them out and a test compares.
//! - What cannot be read back as its type is an error of the read, never a guess.

use model::outbox::{AbortedBy, DeadReason, Outcome, Status};
use model::turn::{TurnMark, TurnOutcome};
use model::{
    ClientMessageId, ConversationId, DeliveryRung, Fingerprint, LeaseToken, MemberId, MemberKind, MemberName,
    MessageId, Priority, RowId, Timestamp, TurnId,
};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, RowIndex, ToSql};

/// A type that fills one column.
pub(crate) trait Stored: Sized {
    /// Reads the column.
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self>;
    /// The value to store.
    fn store(&self) -> ToSqlOutput<'_>;
}

/// Lends a value to a statement as a parameter.
pub(crate) struct Sql<'a, T>(pub(crate) &'a T);

struct Loaded<T>(T);

impl<T: Stored> FromSql for Loaded<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::load(value).map(Loaded)
    }
}

impl<T: Stored> ToSql for Sql<'_, T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.store())
    }
}

/// The column of that name, or at that place.
pub(crate) fn get<T: Stored>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<T> {
    Ok(row.get::<_, Loaded<T>>(column)?.0)
}

impl<T: Stored> Stored for Option<T> {
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::load(value).map(Some),
        }
    }

    fn store(&self) -> ToSqlOutput<'_> {
        self.as_ref().map_or(ToSqlOutput::Owned(Value::Null), T::store)
    }
}

macro_rules! lent {
    ($bytes:expr) => {
        ToSqlOutput::Borrowed(ValueRef::Blob($bytes))
    };
}

macro_rules! made {
    ($bytes:expr) => {
        ToSqlOutput::Owned(Value::Blob($bytes.to_vec()))
    };
}

macro_rules! sixteen_bytes {
    ($($type:ident via $bytes:ident as $output:ident;)*) => {$(
        impl Stored for $type {
            fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
                <[u8; 16]>::column_result(value).map($type::from_bytes)
            }

            fn store(&self) -> ToSqlOutput<'_> {
                $output!(self.$bytes())
            }
        }
    )*};
}

sixteen_bytes! {
    MemberId via as_bytes as lent;
    MessageId via as_bytes as lent;
    ConversationId via as_bytes as lent;
    RowId via to_bytes as made;
    LeaseToken via to_bytes as made;
    TurnId via to_bytes as made;
}

macro_rules! words {
    ($($type:ident via $text:ident;)*) => {$(
        impl Stored for $type {
            fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str()?.parse().map_err(FromSqlError::other)
            }

            fn store(&self) -> ToSqlOutput<'_> {
                ToSqlOutput::Borrowed(ValueRef::Text(self.$text().as_bytes()))
            }
        }
    )*};
}

words! {
    ClientMessageId via as_str;
    MemberName via as_str;
    MemberKind via word;
}

macro_rules! numbers {
    ($($type:ident { $($variant:ident = $code:literal)* })*) => {$(
        impl Stored for $type {
            fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_i64()? {
                    $($code => Ok($type::$variant),)*
                    unknown => Err(FromSqlError::OutOfRange(unknown)),
                }
            }

            fn store(&self) -> ToSqlOutput<'_> {
                ToSqlOutput::Owned(Value::Integer(match self { $($type::$variant => $code,)* }))
            }
        }
    )*};
}

numbers! {
    DeadReason {
        Rejected = 0 TooLarge = 1 FpConflict = 2 MaxAge = 3 DeliverBy = 4 DestinationGone = 5 Revoked = 6 Poison = 7
    }
    Outcome { NotSent = 0 Unknown = 1 NotAccepted = 2 Accepted = 3 }
    AbortedBy { Operator = 0 Session = 1 Policy = 2 }
    Priority { Now = 0 Next = 1 Low = 2 }
    TurnOutcome { Processed = 1 Failed = 2 }
}

macro_rules! codes {
    ($($type:ident;)*) => {$(
        impl Stored for $type {
            fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let code = value.as_i64()?;
                $type::from_code(code).ok_or(FromSqlError::OutOfRange(code))
            }

            fn store(&self) -> ToSqlOutput<'_> {
                ToSqlOutput::Owned(Value::Integer(self.code().into()))
            }
        }
    )*};
}

codes! { Status; DeliveryRung; TurnMark; }

impl Stored for Fingerprint {
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Fingerprint::from_bytes)
    }

    fn store(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Borrowed(ValueRef::Blob(self.as_bytes()))
    }
}

impl Stored for Timestamp {
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Timestamp::from_micros)
    }

    fn store(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned(Value::Integer(self.as_micros()))
    }
}
