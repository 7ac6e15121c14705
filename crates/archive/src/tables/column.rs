//! Columns of a batch by name.

use crate::ArchiveError;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use precipice_record::Ns;
use std::path::Path;

/// The columns of one batch of one file.
pub(crate) struct Columns<'a> {
    pub(crate) batch: &'a RecordBatch,
    pub(crate) file: &'a Path,
}

impl Columns<'_> {
    /// Rows of the batch.
    pub(crate) fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column that every version has, without nulls.
    ///
    /// Another integer width is taken as well: a table that was rewritten by another tool still reads.
    pub(crate) fn required<T: ArrowPrimitiveType>(
        &self,
        name: &str,
    ) -> Result<PrimitiveArray<T>, ArchiveError> {
        let array: PrimitiveArray<T> = self.find::<T>(name)?.ok_or_else(|| self.missing(name))?;
        if array.null_count() > 0 {
            return Err(self.malformed(format!("column {name:?} has nulls")));
        }
        Ok(array)
    }

    /// A column that may be absent as a whole or row by row.
    pub(crate) fn optional<T: ArrowPrimitiveType>(&self, name: &str) -> Result<Optional<T>, ArchiveError> {
        Ok(Optional(self.find(name)?))
    }

    /// A column of text that every version has.
    pub(crate) fn required_text(&self, name: &str) -> Result<StringArray, ArchiveError> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// A column of text that may be absent.
    pub(crate) fn optional_text(&self, name: &str) -> Result<OptionalText, ArchiveError> {
        Ok(OptionalText(self.text(name)?))
    }

    /// A column of booleans; absent is all false.
    pub(crate) fn flags(&self, name: &str) -> Result<BooleanArray, ArchiveError> {
        match self.array(name, &DataType::Boolean)? {
            Some(array) => Ok(array.as_boolean().clone()),
            None => Ok(BooleanArray::from(vec![false; self.rows()])),
        }
    }

    /// An error about this file.
    pub(crate) fn malformed(&self, what: String) -> ArchiveError {
        ArchiveError::Malformed { path: self.file.to_owned(), what }
    }

    fn missing(&self, name: &str) -> ArchiveError {
        ArchiveError::MissingColumn { path: self.file.to_owned(), column: name.to_owned() }
    }

    fn find<T: ArrowPrimitiveType>(&self, name: &str) -> Result<Option<PrimitiveArray<T>>, ArchiveError> {
        Ok(self.array(name, &T::DATA_TYPE)?.map(|array| array.as_primitive::<T>().clone()))
    }

    fn text(&self, name: &str) -> Result<Option<StringArray>, ArchiveError> {
        Ok(self.array(name, &DataType::Utf8)?.map(|array| array.as_string::<i32>().clone()))
    }

    fn array(&self, name: &str, wanted: &DataType) -> Result<Option<ArrayRef>, ArchiveError> {
        let Some(array) = self.batch.column_by_name(name) else { return Ok(None) };
        if array.data_type() == wanted {
            return Ok(Some(array.clone()));
        }
        cast(array, wanted).map(Some).map_err(ArchiveError::table(self.file))
    }
}

/// A numeric column that may be absent.
pub(crate) struct Optional<T: ArrowPrimitiveType>(Option<PrimitiveArray<T>>);

impl<T: ArrowPrimitiveType> Optional<T> {
    /// The value in `row`.
    pub(crate) fn get(&self, row: usize) -> Option<T::Native> {
        self.0.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row))
    }
}

impl Optional<arrow::datatypes::UInt64Type> {
    /// The time in `row`.
    pub(crate) fn ns(&self, row: usize) -> Option<Ns> {
        self.get(row).map(Ns)
    }
}

/// A column of text that may be absent.
pub(crate) struct OptionalText(Option<StringArray>);

impl OptionalText {
    /// The text in `row`.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        self.0.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row))
    }
}
