//! The functions that operators stand for, by the names that `pg_operator` shows: `jsonb_contains(a, b)` is `a @> b`.

use crate::types::Type;
use crate::types::cast::{self, Context};
use std::collections::HashMap;
use std::sync::LazyLock;

/// An operator with the types that its function takes.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Its sign.
    pub sign: &'static str,
    /// The types of what stands at its sides; none where any of several do.
    pub takes: Vec<Option<Type>>,
}

/// Types at the left (`-` for none) and the right, and functions with their signs.
const TABLE: &str = "\
- bit: bitnot ~
- float4: float4abs @ float4um - float4up +
- float8: dcbrt ||/ dsqrt |/ float8abs @ float8um - float8up +
- inet: inetnot ~
- int2: int2abs @ int2not ~ int2um - int2up +
- int4: int4abs @ int4not ~ int4um - int4up +
- int8: int8abs @ int8not ~ int8um - int8up +
- interval: interval_um -
- macaddr: macaddr_not ~
- numeric: numeric_abs @ numeric_uminus - numeric_uplus +
anyarray anyarray: array_eq = array_ge >= array_gt > array_le <= array_lt < array_ne <> arraycontained <@ arraycontains @> arrayoverlap &&
anycompatible anycompatiblearray: array_prepend ||
anycompatiblearray anycompatible: array_append ||
anycompatiblearray anycompatiblearray: array_cat ||
anyelement anymultirange: elem_contained_by_multirange <@
anyelement anyrange: elem_contained_by_range <@
anymultirange anyelement: multirange_contains_elem @>
anymultirange anymultirange: multirange_adjacent_multirange -|- multirange_after_multirange >> multirange_before_multirange <<
anymultirange anymultirange: multirange_contained_by_multirange <@ multirange_contains_multirange @> multirange_eq = multirange_ge >=
anymultirange anymultirange: multirange_gt > multirange_intersect * multirange_le <= multirange_lt < multirange_minus - multirange_ne <>
anymultirange anymultirange: multirange_overlaps_multirange && multirange_overleft_multirange &< multirange_overright_multirange &>
anymultirange anymultirange: multirange_union +
anymultirange anyrange: multirange_adjacent_range -|- multirange_after_range >> multirange_before_range << multirange_contained_by_range <@
anymultirange anyrange: multirange_contains_range @> multirange_overlaps_range && multirange_overleft_range &< multirange_overright_range &>
anynonarray text: anytextcat ||
anyrange anyelement: range_contains_elem @>
anyrange anymultirange: range_adjacent_multirange -|- range_after_multirange >> range_before_multirange << range_contained_by_multirange <@
anyrange anymultirange: range_contains_multirange @> range_overlaps_multirange && range_overleft_multirange &< range_overright_multirange &>
anyrange anyrange: range_adjacent -|- range_after >> range_before << range_contained_by <@ range_contains @> range_eq = range_ge >=
anyrange anyrange: range_gt > range_intersect * range_le <= range_lt < range_minus - range_ne <> range_overlaps && range_overleft &<
anyrange anyrange: range_overright &> range_union +
bit bit: bitand & biteq = bitge >= bitgt > bitle <= bitlt < bitne <> bitor | bitxor #
bit int4: bitshiftleft << bitshiftright >>
bool bool: booleq = boolge >= boolgt > boolle <= boollt < boolne <>
bpchar bpchar: bpchareq = bpcharge >= bpchargt > bpcharle <= bpcharlt < bpcharne <>
bpchar text: bpchariclike ~~* bpcharicnlike !~~* bpcharicregexeq ~* bpcharicregexne !~* bpcharlike ~~ bpcharnlike !~~ bpcharregexeq ~
bpchar text: bpcharregexne !~
bytea bytea: byteacat || byteaeq = byteage >= byteagt > byteale <= bytealike ~~ bytealt < byteane <> byteanlike !~~
char char: chareq = charge >= chargt > charle <= charlt < charne <>
date date: date_eq = date_ge >= date_gt > date_le <= date_lt < date_mi - date_ne <>
date int4: date_mii - date_pli +
date interval: date_mi_interval - date_pl_interval +
date time: datetime_pl +
date timestamp: date_eq_timestamp = date_ge_timestamp >= date_gt_timestamp > date_le_timestamp <= date_lt_timestamp < date_ne_timestamp <>
date timestamptz: date_eq_timestamptz = date_ge_timestamptz >= date_gt_timestamptz > date_le_timestamptz <= date_lt_timestamptz <
date timestamptz: date_ne_timestamptz <>
date timetz: datetimetz_pl +
float4 float4: float4div / float4eq = float4ge >= float4gt > float4le <= float4lt < float4mi - float4mul * float4ne <> float4pl +
float4 float8: float48div / float48eq = float48ge >= float48gt > float48le <= float48lt < float48mi - float48mul * float48ne <> float48pl +
float8 float4: float84div / float84eq = float84ge >= float84gt > float84le <= float84lt < float84mi - float84mul * float84ne <> float84pl +
float8 float8: dpow ^ float8div / float8eq = float8ge >= float8gt > float8le <= float8lt < float8mi - float8mul * float8ne <> float8pl +
float8 interval: mul_d_interval *
inet inet: inetand & inetmi - inetor | network_eq = network_ge >= network_gt > network_le <= network_lt < network_ne <> network_overlap &&
inet inet: network_sub << network_subeq <<= network_sup >> network_supeq >>=
inet int8: inetmi_int8 - inetpl +
int2 int2: int2and & int2div / int2eq = int2ge >= int2gt > int2le <= int2lt < int2mi - int2mod % int2mul * int2ne <> int2or | int2pl +
int2 int2: int2xor #
int2 int4: int24div / int24eq = int24ge >= int24gt > int24le <= int24lt < int24mi - int24mul * int24ne <> int24pl + int2shl << int2shr >>
int2 int8: int28div / int28eq = int28ge >= int28gt > int28le <= int28lt < int28mi - int28mul * int28ne <> int28pl +
int4 date: integer_pl_date +
int4 int2: int42div / int42eq = int42ge >= int42gt > int42le <= int42lt < int42mi - int42mul * int42ne <> int42pl +
int4 int4: int4and & int4div / int4eq = int4ge >= int4gt > int4le <= int4lt < int4mi - int4mod % int4mul * int4ne <> int4or | int4pl +
int4 int4: int4shl << int4shr >> int4xor #
int4 int8: int48div / int48eq = int48ge >= int48gt > int48le <= int48lt < int48mi - int48mul * int48ne <> int48pl +
int8 inet: int8pl_inet +
int8 int2: int82div / int82eq = int82ge >= int82gt > int82le <= int82lt < int82mi - int82mul * int82ne <> int82pl +
int8 int4: int84div / int84eq = int84ge >= int84gt > int84le <= int84lt < int84mi - int84mul * int84ne <> int84pl + int8shl << int8shr >>
int8 int8: int8and & int8div / int8eq = int8ge >= int8gt > int8le <= int8lt < int8mi - int8mod % int8mul * int8ne <> int8or | int8pl +
int8 int8: int8xor #
interval date: interval_pl_date +
interval float8: interval_div / interval_mul *
interval interval: interval_eq = interval_ge >= interval_gt > interval_le <= interval_lt < interval_mi - interval_ne <> interval_pl +
interval time: interval_pl_time +
interval timestamp: interval_pl_timestamp +
interval timestamptz: interval_pl_timestamptz +
interval timetz: interval_pl_timetz +
json _text: json_extract_path #> json_extract_path_text #>>
json int4: json_array_element -> json_array_element_text ->>
json text: json_object_field -> json_object_field_text ->>
jsonb _text: jsonb_delete - jsonb_delete_path #- jsonb_exists_all ?& jsonb_exists_any ?| jsonb_extract_path #> jsonb_extract_path_text #>>
jsonb int4: jsonb_array_element -> jsonb_array_element_text ->> jsonb_delete -
jsonb jsonb: jsonb_concat || jsonb_contained <@ jsonb_contains @> jsonb_eq = jsonb_ge >= jsonb_gt > jsonb_le <= jsonb_lt < jsonb_ne <>
jsonb jsonpath: jsonb_path_exists_opr @? jsonb_path_match_opr @@
jsonb text: jsonb_delete - jsonb_exists ? jsonb_object_field -> jsonb_object_field_text ->>
macaddr macaddr: macaddr_and & macaddr_eq = macaddr_ge >= macaddr_gt > macaddr_le <= macaddr_lt < macaddr_ne <> macaddr_or |
name name: nameeq = namege >= namegt > namele <= namelt < namene <>
name text: nameeqtext = namegetext >= namegttext > nameiclike ~~* nameicnlike !~~* nameicregexeq ~* nameicregexne !~* nameletext <=
name text: namelike ~~ namelttext < namenetext <> namenlike !~~ nameregexeq ~ nameregexne !~
numeric numeric: numeric_add + numeric_div / numeric_eq = numeric_ge >= numeric_gt > numeric_le <= numeric_lt < numeric_mod % numeric_mul *
numeric numeric: numeric_ne <> numeric_power ^ numeric_sub -
oid oid: oideq = oidge >= oidgt > oidle <= oidlt < oidne <>
oidvector oidvector: oidvectoreq = oidvectorge >= oidvectorgt > oidvectorle <= oidvectorlt < oidvectorne <>
text anynonarray: textanycat ||
text name: texteqname = textgename >= textgtname > textlename <= textltname < textnename <>
text text: starts_with ^@ text_ge >= text_gt > text_le <= text_lt < textcat || texteq = texticlike ~~* texticnlike !~~* texticregexeq ~*
text text: texticregexne !~* textlike ~~ textne <> textnlike !~~ textregexeq ~ textregexne !~ ts_match_tt @@
text text: similarity_dist <-> similarity_op % strict_word_similarity_commutator_op %>> strict_word_similarity_dist_commutator_op <->>>
text text: strict_word_similarity_dist_op <<<-> strict_word_similarity_op <<% word_similarity_commutator_op %>
text text: word_similarity_dist_commutator_op <->> word_similarity_dist_op <<-> word_similarity_op <%
time date: timedate_pl +
time interval: time_mi_interval - time_pl_interval +
time time: time_eq = time_ge >= time_gt > time_le <= time_lt < time_mi_time - time_ne <>
timestamp date: timestamp_eq_date = timestamp_ge_date >= timestamp_gt_date > timestamp_le_date <= timestamp_lt_date < timestamp_ne_date <>
timestamp interval: timestamp_mi_interval - timestamp_pl_interval +
timestamp timestamp: timestamp_eq = timestamp_ge >= timestamp_gt > timestamp_le <= timestamp_lt < timestamp_mi - timestamp_ne <>
timestamp timestamptz: timestamp_eq_timestamptz = timestamp_ge_timestamptz >= timestamp_gt_timestamptz > timestamp_le_timestamptz <=
timestamp timestamptz: timestamp_lt_timestamptz < timestamp_ne_timestamptz <>
timestamptz date: timestamptz_eq_date = timestamptz_ge_date >= timestamptz_gt_date > timestamptz_le_date <= timestamptz_lt_date <
timestamptz date: timestamptz_ne_date <>
timestamptz interval: timestamptz_mi_interval - timestamptz_pl_interval +
timestamptz timestamp: timestamptz_eq_timestamp = timestamptz_ge_timestamp >= timestamptz_gt_timestamp > timestamptz_le_timestamp <=
timestamptz timestamp: timestamptz_lt_timestamp < timestamptz_ne_timestamp <>
timestamptz timestamptz: timestamptz_eq = timestamptz_ge >= timestamptz_gt > timestamptz_le <= timestamptz_lt < timestamptz_mi -
timestamptz timestamptz: timestamptz_ne <>
timetz date: timetzdate_pl +
timetz interval: timetz_mi_interval - timetz_pl_interval +
timetz timetz: timetz_eq = timetz_ge >= timetz_gt > timetz_le <= timetz_lt < timetz_ne <>
uuid uuid: uuid_eq = uuid_ge >= uuid_gt > uuid_le <= uuid_lt < uuid_ne <>
varbit varbit: bitcat || varbiteq = varbitge >= varbitgt > varbitle <= varbitlt < varbitne <>";

static BY_NAME: LazyLock<HashMap<&'static str, Vec<Operator>>> = LazyLock::new(|| {
    let mut out: HashMap<&'static str, Vec<Operator>> = HashMap::new();
    for line in TABLE.lines() {
        let Some((types, functions)) = line.split_once(": ") else {
            continue;
        };
        let types: Vec<&str> = types.split_whitespace().filter(|name| *name != "-").collect();
        let mut words = functions.split_whitespace();
        while let (Some(name), Some(sign)) = (words.next(), words.next()) {
            let takes = types.iter().map(|name| Type::of_name(name));
            let operator = Operator {
                sign,
                takes: takes.collect(),
            };
            out.entry(name).or_default().push(operator);
        }
    }
    out
});

/// The operator whose function has this name and takes arguments of these types; of several that for most of the types as they are, and for
/// literals that for text.
pub fn of(name: &str, types: &[Type]) -> Option<&'static Operator> {
    let fit = |operator: &Operator| {
        let mut fit = 0;
        for (wanted, ty) in operator.takes.iter().zip(types) {
            fit += match wanted {
                Some(wanted) if wanted == ty => 2,
                Some(Type::Text) if *ty == Type::Unknown => 1,
                Some(wanted) if !cast::exists(ty, wanted, Context::Implicit) => return None,
                _ => 0,
            };
        }
        Some(fit)
    };
    let all = BY_NAME.get(name)?.iter();
    let fitting = all.filter(|operator| operator.takes.len() == types.len());
    let fitting = fitting.filter_map(|operator| Some((fit(operator)?, operator)));
    fitting.max_by_key(|(fit, _)| *fit).map(|(_, operator)| operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_operators() {
        let sign = |name: &str, types: &[Type]| of(name, types).map(|operator| operator.sign);
        assert_eq!(sign("jsonb_contains", &[Type::Jsonb, Type::Unknown]), Some("@>"));
        assert_eq!(sign("int4um", &[Type::Int4]), Some("-"));
        assert_eq!(sign("jsonb_contains", &[Type::Jsonb]), None);
        assert_eq!(sign("int4mul", &[Type::Numeric, Type::Int4]), None);
        let delete = |ty: Type| of("jsonb_delete", &[Type::Jsonb, ty]).map(|operator| operator.takes[1].clone());
        assert_eq!(delete(Type::Unknown), Some(Some(Type::Text)));
        assert_eq!(delete(Type::Int4), Some(Some(Type::Int4)));
    }
}
