//! Estimates a value's memory by serializing it.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{MAP_BYTES, STRING_BYTES};

/// The memory of each kind of value, in bytes.
mod cost {
    /// The memory of a number, a boolean or `null`, in bytes.
    pub(super) const SCALAR_BYTES: usize = 8;
    /// The memory of a list without its items, in bytes.
    pub(super) const LIST_BYTES: usize = 64;
    /// The memory of a list item without its content, in bytes. It is twice the size of a `Value`, because lists grow
    /// by doubling.
    pub(super) const ITEM_BYTES: usize = 64;
    /// The memory of a map entry, in bytes, if nodes are at least half full.
    pub(super) const ENTRY_BYTES: usize = 160;
    /// The memory of a struct, in bytes. It is twice the size of the largest protocol struct that occurs in lists.
    pub(super) const RECORD_BYTES: usize = 640;
}

/// Estimates the memory of `value`, in bytes.
pub(crate) fn weight<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut sum = WeightSum(0);
    // This cannot fail: everything that can be serialized as JSON can be serialized here.
    let _ = value.serialize(&mut sum);
    sum.0
}

struct WeightSum(usize);

impl WeightSum {
    fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }
}

type WeightError = serde::de::value::Error;
type WeightResult = Result<(), WeightError>;

macro_rules! scalars {
    ($($name:ident: $type:ty,)+) => { $(
        fn $name(self, _: $type) -> WeightResult {
            self.add(cost::SCALAR_BYTES);
            Ok(())
        }
    )+ };
}

impl Serializer for &mut WeightSum {
    type Ok = ();
    type Error = WeightError;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    scalars! {
        serialize_bool: bool, serialize_char: char,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_f32: f32, serialize_f64: f64,
    }

    fn serialize_str(self, text: &str) -> WeightResult {
        self.add(STRING_BYTES + text.len());
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> WeightResult {
        self.add(STRING_BYTES + bytes.len());
        Ok(())
    }

    fn serialize_none(self) -> WeightResult {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> WeightResult {
        value.serialize(self)
    }

    fn serialize_unit(self) -> WeightResult {
        self.add(cost::SCALAR_BYTES);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> WeightResult {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> WeightResult {
        self.serialize_unit()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> WeightResult {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> WeightResult {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, WeightError> {
        self.add(cost::LIST_BYTES);
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, WeightError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, WeightError> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, WeightError> {
        self.serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, WeightError> {
        self.add(MAP_BYTES);
        Ok(self)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self, WeightError> {
        // Raw text (`RawValue`) is serialized as a struct with one field.
        if !name.starts_with("$serde_json") {
            self.add(cost::RECORD_BYTES);
        }
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, WeightError> {
        self.serialize_struct(name, 0)
    }
}

macro_rules! lists {
    ($($trait:ident::$item:ident)+) => { $(
        impl $trait for &mut WeightSum {
            type Ok = ();
            type Error = WeightError;
            fn $item<T: Serialize + ?Sized>(&mut self, item: &T) -> WeightResult {
                self.add(cost::ITEM_BYTES);
                item.serialize(&mut **self)
            }
            fn end(self) -> WeightResult {
                Ok(())
            }
        }
    )+ };
}

lists! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

impl SerializeMap for &mut WeightSum {
    type Ok = ();
    type Error = WeightError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> WeightResult {
        self.add(cost::ENTRY_BYTES);
        key.serialize(&mut **self)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> WeightResult {
        value.serialize(&mut **self)
    }
    fn end(self) -> WeightResult {
        Ok(())
    }
}

macro_rules! records {
    ($($trait:ident)+) => { $(
        impl $trait for &mut WeightSum {
            type Ok = ();
            type Error = WeightError;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, value: &T) -> WeightResult {
                value.serialize(&mut **self)
            }
            fn end(self) -> WeightResult {
                Ok(())
            }
        }
    )+ };
}

records! { SerializeStruct SerializeStructVariant }
