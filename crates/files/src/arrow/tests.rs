use super::decode::value;
use super::encode::Encoder;
use super::shape::Shape;
use super::{RecordBatch, ipc, parquet};
use arrow_schema::Field;
use nestor_model::{Binary, Decimal128, Document, ObjectId, Value, doc, values_equal};
use std::io::Cursor;

fn documents() -> Vec<Document> {
    let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).unwrap().0);
    let uuid = Value::Binary(Binary {
        subtype: 4,
        bytes: [7; 16].as_slice().into(),
    });
    let bytes = Value::Binary(Binary {
        subtype: 0,
        bytes: b"\x00\xff".as_slice().into(),
    });
    let id = ObjectId::parse("0123456789abcdef01234567").unwrap();
    vec![
        doc! { "_id": Value::ObjectId(id), "n": 1, "wide": 1, "x": 1.5, "price": decimal("1.50"), "on": true, "at": Value::DateTime(-1),
        "in": doc! { "city": "Köln", "deep": doc! { "n": 1i64 } }, "tags": vec![Value::from("a"), Value::Null],
        "lines": vec![Value::from(doc! { "sku": "a", "n": 2 }), Value::from(doc! { "sku": "b" })], "u": uuid, "b": bytes, "any": 1 },
        doc! { "any": "x", "wide": 5_000_000_000i64, "price": decimal("-0.005"), "tags": Value::from(Vec::<Value>::new()) },
        doc! { "n": Value::Null, "in": doc! {}, "price": 7 },
    ]
}

/// The documents as a column, and back.
fn there_and_back(docs: &[Document]) -> (Field, Vec<Document>, arrow_array::ArrayRef) {
    let mut shape = Shape::default();
    docs.iter().for_each(|doc| shape.note(doc.as_ref().into()));
    let shape = shape.settled();
    let mut encoder = Encoder::new(&shape);
    docs.iter().for_each(|doc| encoder.push(doc.as_ref().into()).unwrap());
    let (field, array) = (shape.field("doc"), encoder.finish());
    let back = (0..array.len()).map(|row| match value(&field, &array, row) {
        Ok(Value::Document(doc)) => doc,
        other => panic!("{other:?}"),
    });
    (field.clone(), back.collect(), array.clone())
}

/// What files keep: nothing that is null, and numbers as wide as their column.
fn kept() -> Vec<Document> {
    let mut docs = documents();
    let decimal = |text: &str| Value::Decimal128(Decimal128::parse(text).unwrap().0);
    docs[0].set("wide", 1i64);
    docs[0].set("price", decimal("1.500"));
    docs[2].remove("n");
    docs[2].set("price", decimal("7.000"));
    docs
}

#[test]
fn documents_are_structs_and_back() {
    let (_, back, _) = there_and_back(&documents());
    for (found, wanted) in back.iter().zip(kept()) {
        let wanted = &wanted;
        for (name, value) in wanted.iter() {
            let own = found.get(name).unwrap_or_else(|| panic!("{name} of {found:?}"));
            assert!(
                values_equal(&own.to_value(), &value.to_value()),
                "{name}: {own:?} and {value:?}"
            );
        }
        assert_eq!(found.iter().count(), wanted.iter().count(), "{found:?}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let mut shape = Shape::default();
    shape.note(
        doc! { "a": doc! { "b": vec![Value::from(1)] }, "d": Value::Decimal128(Decimal128::parse("1.5").unwrap().0) }
            .as_ref()
            .into(),
    );
    let shape = shape.settled();
    for (doc, path, found) in [
        (doc! { "a": doc! { "b": vec![Value::from("x")] } }, "a.b.[]", "string"),
        (doc! { "a": 5 }, "a", "int"),
        (doc! { "a": doc! { "c": 1 } }, "a.c", "no document before it"),
        (
            doc! { "d": Value::Decimal128(Decimal128::parse("1.55").unwrap().0) },
            "d",
            "more digits",
        ),
    ] {
        let misfit = Encoder::new(&shape).push(doc.as_ref().into()).unwrap_err();
        assert!(misfit.path == path && misfit.found.contains(found), "{misfit:?}");
    }
}

#[test]
fn files_keep_batches() {
    let (field, _, array) = there_and_back(&documents());
    let arrow_schema::DataType::Struct(fields) = field.data_type() else {
        panic!("{field:?}");
    };
    use arrow_array::cast::AsArray;
    let own = array.as_struct();
    let schema = std::sync::Arc::new(arrow_schema::Schema::new(fields.clone()));
    let batch = RecordBatch::try_new(schema.clone(), own.columns().to_vec()).unwrap();
    let mut writer = ipc::Writer::new(Vec::new(), &schema).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.finish().unwrap();
    let all: Vec<RecordBatch> = ipc::Reader::open(Cursor::new(bytes), None)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(all.as_slice(), std::slice::from_ref(&batch));
    let mut file = tempfile::tempfile().unwrap();
    let mut writer = parquet::Writer::new(&mut file, schema.clone()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let reader = parquet::Reader::open(file.try_clone().unwrap()).unwrap();
    assert_eq!((reader.groups(), reader.schema().fields()), (1, schema.fields()));
    let (least, most) = reader.ranges("wide").unwrap();
    let field = schema.field_with_name("wide").unwrap();
    assert!(matches!(value(field, &least, 0), Ok(Value::Int64(1))));
    assert!(matches!(value(field, &most, 0), Ok(Value::Int64(5_000_000_000))));
    let every: Vec<usize> = (0..schema.fields().len()).collect();
    let read: Vec<RecordBatch> = reader
        .batches(&every, vec![0], 1024)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(read[0].columns(), batch.columns());
    let reader = parquet::Reader::open(file).unwrap();
    let read: Vec<RecordBatch> = reader
        .batches(&[2, 0], vec![0], 1024)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(read[0].num_columns(), 2);
    assert_eq!(read[0].column(0), batch.column(0), "in the order of the file");
}
