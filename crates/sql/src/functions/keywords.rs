//! The words that cannot be names everywhere, as `pg_get_keywords` tells of them.

use nestor_model::Value;
use nestor_planner::relation::Tuple;

/// No names unless they are quoted.
const RESERVED: &str = "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create \
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end \
    except false fetch for foreign from grant group having in initially intersect into lateral leading limit localtime localtimestamp \
    not null offset on only or order placing primary references returning select session_user some symmetric table then to trailing \
    true union unique user using variadic when where window with";
/// Names of functions and types, not of tables and columns.
const OF_FUNCTIONS: &str = "authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left \
    like natural notnull outer overlaps right similar tablesample verbose";

/// The rows of the function.
pub(super) fn rows() -> Vec<Tuple> {
    let row = |word: &str, code: &str, description: &str| -> Tuple {
        vec![
            Value::String(word.into()),
            Value::String(code.into()),
            Value::Bool(true),
            Value::String(description.into()),
            Value::String("can be bare label".into()),
        ]
    };
    let reserved = RESERVED.split_whitespace().map(|word| row(word, "R", "reserved"));
    let of_functions = OF_FUNCTIONS
        .split_whitespace()
        .map(|word| row(word, "T", "reserved (can be function or type name)"));
    reserved.chain(of_functions).collect()
}
