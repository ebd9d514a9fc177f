//! The relay's words as columns.

use model::relay::{Ending, Outcome, Precondition, Status};
use model::route_class::{OrderKey, RouteClass};
use rusqlite::types::{FromSqlError, FromSqlResult, ToSqlOutput, Value, ValueRef};

use crate::column::Stored;

macro_rules! codes {
    ($($type:ident;)*) => {$(
        impl Stored for $type {
            fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let code = value.as_i64()?;
                $type::from_code(code).ok_or(FromSqlError::OutOfRange(code))
            }

            fn store(&self) -> ToSqlOutput<'_> {
                ToSqlOutput::Owned(Value::Integer(self.code()))
            }
        }
    )*};
}

codes! { Status; Outcome; Ending; }

impl Stored for RouteClass {
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_i64()? {
            0 => Ok(RouteClass::Append),
            1 => Ok(RouteClass::Replace),
            unknown => Err(FromSqlError::OutOfRange(unknown)),
        }
    }

    fn store(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned(Value::Integer(match self {
            RouteClass::Append => 0,
            RouteClass::Replace => 1,
            // No table takes it: what is online only is never stored.
            RouteClass::Online => 2,
        }))
    }
}

impl Stored for OrderKey {
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
        OrderKey::parse(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }

    fn store(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Borrowed(ValueRef::Text(self.as_str().as_bytes()))
    }
}

impl Stored for Precondition {
    fn load(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Precondition::parse(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }

    fn store(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Owned(Value::Text(self.to_text()))
    }
}
