//! Blocks of PL/pgSQL, as DO and functions run them: [`reader`] reads them, with [`declared`] and [`loops`].
//!
//! ```text
//! [ DECLARE name type [ := expression ]; name ALIAS FOR other; name CURSOR [ (arguments) ] FOR query; ... ]
//! BEGIN
//!     statements: SQL, PERFORM, EXECUTE, assignments, IF, CASE, LOOP, WHILE, FOR, FOREACH, EXIT, CONTINUE, RAISE, ASSERT, RETURN,
//!     RETURN NEXT, RETURN QUERY, GET DIAGNOSTICS, OPEN, FETCH, MOVE, CLOSE, NULL, blocks
//! [ EXCEPTION WHEN condition [ OR condition ] THEN statements ... ]
//! END
//! ```
//!
//! Conditions and statements of SQL stay texts: they are parsed where they run, as in PostgreSQL, so what stands in a branch that is not taken
//! may be anything.

pub mod check;
mod declared;
mod loops;
mod reader;

use self::reader::Reader;
use super::dialect::Sql;
use crate::error::error;
use nestor_model::Result;
use sqlparser::tokenizer::Tokenizer;

/// A block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Its name.
    pub label: Option<String>,
    /// What becomes of a name that is one of a variable and of a column.
    pub conflict: Conflict,
    /// The line that it begins at.
    pub line: usize,
    /// What it declares.
    pub variables: Vec<Variable>,
    /// What it does.
    pub steps: Vec<Step>,
    /// What is done about errors: the names of conditions, and the steps.
    pub handlers: Vec<(Vec<Condition>, Vec<Step>)>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The text of its type; `record` for rows.
    pub ty: String,
    /// What it begins with.
    pub value: Option<String>,
    /// It keeps that.
    pub is_constant: bool,
    /// It is never null.
    pub not_null: bool,
    /// What else it may be.
    pub kind: Kind,
}

/// What a name that a block declares is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Kind {
    /// A variable.
    #[default]
    Plain,
    /// Another name of a variable.
    Alias(String),
    /// A cursor over the rows of a query, with arguments and the texts of their types.
    Cursor {
        /// The arguments.
        args: Vec<(String, String)>,
        /// The query.
        query: String,
    },
}

/// What becomes of a name that is one of a variable and of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// It is an error.
    #[default]
    Error,
    /// It is the variable.
    Variable,
    /// It is the column.
    Column,
}

/// Arguments of a cursor, with names where they have some.
pub type Given = Vec<(Option<String>, String)>;

/// Where FETCH and MOVE go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// So many rows further; backwards if the number is negative.
    By(String),
    /// As far as there are rows; backwards with `true`.
    All(bool),
    /// To a row by its number, from the end if that is negative.
    To(String),
}

/// The query of a cursor that is opened.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// That of its declaration, for arguments.
    Declared(Given),
    /// A query.
    Query(String),
    /// A query whose text is computed, and its parameters.
    Computed(String, Vec<String>),
}

/// Errors that a handler takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All but those that end a statement from outside.
    Others,
    /// Those of a SQLSTATE, or of a class of them (`23000`).
    State(String),
}

/// Where a row goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The variables; a record takes the whole row.
    pub names: Vec<String>,
    /// There has to be just one row.
    pub is_strict: bool,
}

/// One thing that a block does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A statement of SQL.
    Sql {
        /// Its text, without INTO.
        text: String,
        /// Where its row goes.
        into: Option<Destination>,
    },
    /// PERFORM: a query whose rows nobody wants.
    Perform(String),
    /// EXECUTE of a text that is computed.
    Execute {
        /// The text.
        text: String,
        /// Where its row goes.
        into: Option<Destination>,
        /// Its parameters.
        using: Vec<String>,
    },
    /// `name := expression`
    Assign(String, String),
    /// `name[subscript]… := expression`
    AssignElement {
        /// The array.
        name: String,
        /// The subscripts.
        subscripts: Vec<String>,
        /// The value.
        value: String,
    },
    /// CASE.
    Case {
        /// What is compared; conditions are asked without it.
        operand: Option<String>,
        /// Values or conditions, and what is done for them.
        arms: Vec<(Vec<String>, Vec<Step>)>,
        /// What is done otherwise; without it that is an error.
        otherwise: Option<Vec<Step>>,
    },
    /// FOREACH over the elements of an array.
    ForEach {
        /// Its name.
        label: Option<String>,
        /// Where an element goes.
        names: Vec<String>,
        /// It takes parts of so many dimensions.
        slice: usize,
        /// The array.
        array: String,
        /// What is done with each.
        steps: Vec<Step>,
    },
    /// FOR over the rows of a cursor that is declared.
    ForCursor {
        /// Its name.
        label: Option<String>,
        /// The record.
        name: String,
        /// The cursor.
        cursor: String,
        /// Its arguments.
        args: Given,
        /// What is done with each.
        steps: Vec<Step>,
    },
    /// GET DIAGNOSTICS: variables and items, in capitals.
    Diagnostics {
        /// Those of the error that is handled.
        stacked: bool,
        /// The variables and the items.
        items: Vec<(String, String)>,
    },
    /// ASSERT.
    Assert {
        /// What has to hold.
        condition: String,
        /// What is said if it does not.
        message: Option<String>,
    },
    /// OPEN of a cursor.
    Open {
        /// The cursor.
        cursor: String,
        /// Its query.
        query: Opened,
    },
    /// FETCH, and MOVE without a destination.
    Fetch {
        /// The cursor.
        cursor: String,
        /// Where it goes.
        direction: Direction,
        /// Where the row goes.
        into: Option<Destination>,
    },
    /// CLOSE.
    Close(String),
    /// IF, with ELSIF and ELSE.
    If {
        /// Conditions and what is done if they hold.
        branches: Vec<(String, Vec<Step>)>,
        /// What is done if none of them holds.
        otherwise: Vec<Step>,
    },
    /// LOOP and WHILE.
    Loop {
        /// Its name.
        label: Option<String>,
        /// It goes on while this holds.
        condition: Option<String>,
        /// What is done again and again.
        steps: Vec<Step>,
    },
    /// FOR over numbers.
    ForNumbers {
        /// Its name.
        label: Option<String>,
        /// The variable.
        name: String,
        /// The first and the last number.
        bounds: (String, String),
        /// What lies between two of them; 1 if nothing is said.
        by: Option<String>,
        /// From the larger to the smaller.
        reverses: bool,
        /// What is done with each.
        steps: Vec<Step>,
    },
    /// FOR over the rows of a query.
    ForRows {
        /// Its name.
        label: Option<String>,
        /// Where the row goes.
        names: Vec<String>,
        /// The query; of EXECUTE the text that is computed.
        query: String,
        /// The query is computed.
        is_computed: bool,
        /// Its parameters, if it is computed.
        using: Vec<String>,
        /// What is done with each.
        steps: Vec<Step>,
    },
    /// EXIT and CONTINUE.
    Leave {
        /// The loop.
        label: Option<String>,
        /// If this holds.
        condition: Option<String>,
        /// It goes on with the next round.
        continues: bool,
    },
    /// COMMIT, or ROLLBACK: another transaction begins.
    End {
        /// What was done stays.
        commits: bool,
    },
    /// RAISE.
    Raise(Raise),
    /// RETURN, with a value or without.
    Return(Option<String>),
    /// RETURN NEXT.
    ReturnNext(Option<String>),
    /// RETURN QUERY.
    ReturnQuery {
        /// The query, or the text that is computed.
        text: String,
        /// The query is computed.
        is_computed: bool,
        /// Its parameters, if it is computed.
        using: Vec<String>,
    },
    /// A block within.
    Block(Block),
    /// The next step begins at this line, counted from 1.
    Line(usize),
}

/// RAISE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raise {
    /// `EXCEPTION`, `NOTICE`, ...; empty for RAISE alone, which raises the error of the handler again.
    pub level: String,
    /// The message, whose `%` stand for the arguments.
    pub message: Option<String>,
    /// The arguments.
    pub args: Vec<String>,
    /// The condition.
    pub state: Option<String>,
    /// What USING says: names in capitals, and expressions.
    pub options: Vec<(String, String)>,
}

/// SQLSTATEs by the names of conditions.
const CONDITIONS: &[(&str, &str)] = &[
    ("successful_completion", "00000"),
    ("no_data", "02000"),
    ("feature_not_supported", "0A000"),
    ("cardinality_violation", "21000"),
    ("data_exception", "22000"),
    ("string_data_right_truncation", "22001"),
    ("numeric_value_out_of_range", "22003"),
    ("invalid_datetime_format", "22007"),
    ("datetime_field_overflow", "22008"),
    ("division_by_zero", "22012"),
    ("invalid_parameter_value", "22023"),
    ("invalid_text_representation", "22P02"),
    ("integrity_constraint_violation", "23000"),
    ("restrict_violation", "23001"),
    ("not_null_violation", "23502"),
    ("foreign_key_violation", "23503"),
    ("unique_violation", "23505"),
    ("check_violation", "23514"),
    ("exclusion_violation", "23P01"),
    ("invalid_transaction_state", "25000"),
    ("read_only_sql_transaction", "25006"),
    ("with_check_option_violation", "44000"),
    ("dependent_objects_still_exist", "2BP01"),
    ("invalid_schema_name", "3F000"),
    ("serialization_failure", "40001"),
    ("deadlock_detected", "40P01"),
    ("syntax_error_or_access_rule_violation", "42000"),
    ("syntax_error", "42601"),
    ("insufficient_privilege", "42501"),
    ("cannot_coerce", "42846"),
    ("grouping_error", "42803"),
    ("invalid_foreign_key", "42830"),
    ("invalid_column_reference", "42P10"),
    ("wrong_object_type", "42809"),
    ("datatype_mismatch", "42804"),
    ("undefined_column", "42703"),
    ("undefined_function", "42883"),
    ("undefined_table", "42P01"),
    ("undefined_parameter", "42P02"),
    ("undefined_object", "42704"),
    ("duplicate_column", "42701"),
    ("duplicate_cursor", "42P03"),
    ("duplicate_database", "42P04"),
    ("duplicate_function", "42723"),
    ("duplicate_prepared_statement", "42P05"),
    ("duplicate_schema", "42P06"),
    ("duplicate_table", "42P07"),
    ("duplicate_alias", "42712"),
    ("duplicate_object", "42710"),
    ("ambiguous_column", "42702"),
    ("ambiguous_function", "42725"),
    ("invalid_table_definition", "42P16"),
    ("invalid_object_definition", "42P17"),
    ("insufficient_resources", "53000"),
    ("out_of_memory", "53200"),
    ("program_limit_exceeded", "54000"),
    ("object_not_in_prerequisite_state", "55000"),
    ("object_in_use", "55006"),
    ("lock_not_available", "55P03"),
    ("query_canceled", "57014"),
    ("raise_exception", "P0001"),
    ("no_data_found", "P0002"),
    ("too_many_rows", "P0003"),
    ("assert_failure", "P0004"),
    ("plpgsql_error", "P0000"),
    ("statement_too_complex", "54001"),
    ("too_many_columns", "54011"),
    ("too_many_arguments", "54023"),
    ("case_not_found", "20000"),
    ("null_value_not_allowed", "22004"),
    ("interval_field_overflow", "22015"),
    ("character_not_in_repertoire", "22021"),
    ("invalid_escape_sequence", "22025"),
    ("substring_error", "22011"),
    ("invalid_regular_expression", "2201B"),
    ("invalid_argument_for_logarithm", "2201E"),
    ("invalid_argument_for_power_function", "2201F"),
    ("sequence_generator_limit_exceeded", "2200H"),
    ("array_subscript_error", "2202E"),
    ("invalid_json_text", "22032"),
    ("floating_point_exception", "22P01"),
    ("untranslatable_character", "22P05"),
    ("invalid_cursor_state", "24000"),
    ("active_sql_transaction", "25001"),
    ("no_active_sql_transaction", "25P01"),
    ("in_failed_sql_transaction", "25P02"),
    ("triggered_data_change_violation", "27000"),
    ("invalid_transaction_termination", "2D000"),
    ("invalid_cursor_name", "34000"),
    ("invalid_savepoint_specification", "3B001"),
    ("invalid_catalog_name", "3D000"),
    ("transaction_rollback", "40000"),
    ("invalid_name", "42602"),
    ("invalid_column_definition", "42611"),
    ("name_too_long", "42622"),
    ("generated_always", "428C9"),
    ("reserved_name", "42939"),
    ("invalid_cursor_definition", "42P11"),
    ("invalid_function_definition", "42P13"),
    ("invalid_prepared_statement_definition", "42P14"),
    ("indeterminate_datatype", "42P18"),
    ("invalid_recursion", "42P19"),
    ("windowing_error", "42P20"),
    ("disk_full", "53100"),
    ("too_many_connections", "53300"),
    ("configuration_limit_exceeded", "53400"),
    ("operator_intervention", "57000"),
    ("admin_shutdown", "57P01"),
    ("system_error", "58000"),
    ("io_error", "58030"),
    ("undefined_file", "58P01"),
    ("internal_error", "XX000"),
];

impl Condition {
    /// Whether a handler of this takes an error of a state.
    pub fn takes(&self, state: &str) -> bool {
        match self {
            Self::Others => !matches!(state, "57014" | "P0004"),
            Self::State(own) => {
                own == state || own.ends_with("000") && state.len() == 5 && own.get(..2) == state.get(..2)
            }
        }
    }
}

/// The SQLSTATE of a condition.
///
/// Errors: 42704.
pub fn state_of(name: &str) -> Result<&'static str> {
    let found = CONDITIONS.iter().find(|(own, _)| *own == name);
    found
        .map(|(_, state)| *state)
        .ok_or_else(|| error("42704", format!("unrecognized exception condition \"{name}\"")))
}

/// Reads a block.
///
/// Errors: 42601, 42704; 0A000 for statements of PL/pgSQL that are not known here.
pub fn parse(text: &str) -> Result<Block> {
    let tokens = Tokenizer::new(&Sql, text)
        .tokenize()
        .map_err(|e| error("42601", e.to_string()))?;
    Reader::new(tokens).whole()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read() {
        let text = "DECLARE n int := 1; r record; BEGIN
            IF NOT EXISTS (SELECT 1 FROM t WHERE CASE WHEN a THEN b END) THEN CREATE TYPE m AS ENUM ('a;b'); END IF;
            SELECT count(*) INTO STRICT n FROM t; INSERT INTO t VALUES (n) RETURNING id INTO n; n := n + 1; n = 2;
            FOR r IN SELECT * FROM t LOOP PERFORM f(r.a); EXIT WHEN r.a = 1; END LOOP;
            <<l>> FOR i IN REVERSE 3..1 BY 2 LOOP CONTINUE l; END LOOP;
            EXECUTE format('x %I', n) INTO n USING 1, 2; RAISE NOTICE 'a %', n; NULL; RETURN;
            EXCEPTION WHEN duplicate_object OR SQLSTATE '23505' THEN NULL; WHEN others THEN RAISE; END";
        let mut block = parse(text).unwrap();
        assert!(matches!(&block.steps[..3], [Step::Line(2), _, Step::Line(3)]));
        block.steps.retain(|step| !matches!(step, Step::Line(_)));
        assert_eq!(block.variables.len(), 2);
        assert_eq!(block.steps.len(), 10);
        assert_eq!(block.handlers.len(), 2);
        assert!(
            matches!(&block.steps[1], Step::Sql { text, into: Some(into) } if text == "SELECT count(*) FROM t" && into.is_strict)
        );
        assert!(
            matches!(&block.steps[2], Step::Sql { text, into: Some(_) } if text.trim() == "INSERT INTO t VALUES (n) RETURNING id")
        );
        assert!(matches!(&block.steps[3], Step::Assign(name, value) if name == "n" && value == "n + 1"));
        assert!(matches!(&block.steps[6], Step::ForNumbers { by: Some(by), reverses: true, .. } if by == "2"));
        assert!(block.handlers[0].0[0].takes("42710") && block.handlers[0].0[1].takes("23505"));
        assert!(Condition::State("23000".to_owned()).takes("23505") && !Condition::Others.takes("57014"));
        for wrong in [
            "BEGIN",
            "BEGIN x END",
            "BEGIN IF a END IF; END",
            "BEGIN END; x",
            "SELECT 1",
            "BEGIN EXCEPTION END",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let deep = format!("{}NULL;{}", "BEGIN ".repeat(200), "END;".repeat(200));
        assert!(parse(&deep).is_err());
    }
}
