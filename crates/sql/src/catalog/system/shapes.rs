//! The columns of the catalog's tables.

use super::{INFORMATION_SCHEMA, PG_CATALOG};
use crate::types::Type;

/// A table of the catalog.
pub struct Shape {
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its OID; PostgreSQL's for those of `pg_catalog` that are tables there.
    pub oid: u32,
    /// It is a view in PostgreSQL.
    pub is_view: bool,
    text: &'static str,
}

impl Shape {
    /// The number of its schema.
    pub fn namespace(&self) -> i64 {
        match self.schema {
            "pg_catalog" => PG_CATALOG,
            _ => INFORMATION_SCHEMA,
        }
    }

    /// Names and types of its columns.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, Type)> {
        self.text.split(',').map(|column| {
            let (name, ty) = column.trim().split_once(' ').unwrap_or((column, "text"));
            (name, Type::of_name(ty).unwrap_or(Type::Text))
        })
    }
}

/// The shape of a table.
pub fn find(schema: &str, name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.schema == schema && shape.name == name)
}

/// The OID of a table of the catalog, in a schema of it or in any.
pub fn oid_of(schema: Option<&str>, name: &str) -> Option<u32> {
    let mut own = SHAPES
        .iter()
        .filter(|shape| schema.is_none_or(|schema| schema == shape.schema));
    own.find(|shape| shape.name == name).map(|shape| shape.oid)
}

/// The name of the table with an OID.
pub fn name_of(oid: u32) -> Option<&'static str> {
    of_oid(oid).map(|shape| shape.name)
}

/// The shape with an OID.
pub fn of_oid(oid: u32) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.oid == oid)
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Shape> {
    SHAPES.iter()
}

const fn table(oid: u32, name: &'static str, text: &'static str) -> Shape {
    Shape {
        schema: "pg_catalog",
        name,
        oid,
        is_view: false,
        text,
    }
}

const fn view(oid: u32, name: &'static str, text: &'static str) -> Shape {
    Shape {
        is_view: true,
        ..table(oid, name, text)
    }
}

const fn standard(oid: u32, name: &'static str, text: &'static str) -> Shape {
    Shape {
        schema: "information_schema",
        ..view(oid, name, text)
    }
}

static SHAPES: &[Shape] = &[
    table(
        1247,
        "pg_type",
        "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, typtype char, typcategory char, typispreferred bool, typisdefined bool, typdelim char, typrelid oid, typsubscript regproc, typelem oid, typarray oid, typinput regproc, typoutput regproc, typreceive regproc, typsend regproc, typmodin regproc, typmodout regproc, typanalyze regproc, typalign char, typstorage char, typnotnull bool, typbasetype oid, typtypmod int4, typndims int4, typcollation oid, typdefaultbin text, typdefault text, typacl text[]",
    ),
    table(
        1249,
        "pg_attribute",
        "attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, attnum int2, attndims int4, attcacheoff int4, atttypmod int4, attbyval bool, attalign char, attstorage char, attcompression char, attnotnull bool, atthasdef bool, atthasmissing bool, attidentity char, attgenerated char, attisdropped bool, attislocal bool, attinhcount int4, attcollation oid, attacl text[], attoptions text[], attfdwoptions text[], attmissingval text",
    ),
    table(
        1255,
        "pg_proc",
        "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4, prorows float4, provariadic oid, prosupport regproc, prokind char, prosecdef bool, proleakproof bool, proisstrict bool, proretset bool, provolatile char, proparallel char, pronargs int2, pronargdefaults int2, prorettype oid, proargtypes oidvector, proallargtypes oid[], proargmodes char[], proargnames text[], proargdefaults text, protrftypes oid[], prosrc text, probin text, prosqlbody text, proconfig text[], proacl text[]",
    ),
    table(
        1259,
        "pg_class",
        "oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam oid, relfilenode oid, reltablespace oid, relpages int4, reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex bool, relisshared bool, relpersistence char, relkind char, relnatts int2, relchecks int2, relhasrules bool, relhastriggers bool, relhassubclass bool, relrowsecurity bool, relforcerowsecurity bool, relispopulated bool, relreplident char, relispartition bool, relrewrite oid, relfrozenxid int8, relminmxid int8, relacl text[], reloptions text[], relpartbound text",
    ),
    table(
        1260,
        "pg_authid",
        "oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolbypassrls bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz",
    ),
    table(
        1261,
        "pg_auth_members",
        "roleid oid, member oid, grantor oid, admin_option bool",
    ),
    table(
        1262,
        "pg_database",
        "oid oid, datname name, datdba oid, encoding int4, datlocprovider char, datistemplate bool, datallowconn bool, datconnlimit int4, datfrozenxid int8, datminmxid int8, dattablespace oid, datcollate text, datctype text, daticulocale text, datcollversion text, datacl text[]",
    ),
    table(
        1213,
        "pg_tablespace",
        "oid oid, spcname name, spcowner oid, spcacl text[], spcoptions text[]",
    ),
    table(
        1417,
        "pg_foreign_server",
        "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl text[], srvoptions text[]",
    ),
    table(
        1418,
        "pg_user_mapping",
        "oid oid, umuser oid, umserver oid, umoptions text[]",
    ),
    view(
        12001,
        "pg_user_mappings",
        "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]",
    ),
    table(
        2328,
        "pg_foreign_data_wrapper",
        "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl text[], fdwoptions text[]",
    ),
    table(3118, "pg_foreign_table", "ftrelid oid, ftserver oid, ftoptions text[]"),
    table(
        2600,
        "pg_aggregate",
        "aggfnoid regproc, aggkind char, aggnumdirectargs int2, aggtransfn regproc, aggfinalfn regproc, aggsortop oid, aggtranstype oid, agginitval text",
    ),
    table(2601, "pg_am", "oid oid, amname name, amhandler regproc, amtype char"),
    table(
        2602,
        "pg_amop",
        "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy int2, amoppurpose char, amopopr oid, amopmethod oid, amopsortfamily oid",
    ),
    table(
        2603,
        "pg_amproc",
        "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum int2, amproc regproc",
    ),
    table(2604, "pg_attrdef", "oid oid, adrelid oid, adnum int2, adbin text"),
    table(
        2605,
        "pg_cast",
        "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char",
    ),
    table(
        2606,
        "pg_constraint",
        "oid oid, conname name, connamespace oid, contype char, condeferrable bool, condeferred bool, convalidated bool, conrelid oid, contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype char, confdeltype char, confmatchtype char, conislocal bool, coninhcount int4, connoinherit bool, conkey int2[], confkey int2[], conpfeqop oid[], conppeqop oid[], conffeqop oid[], confdelsetcols int2[], conexclop oid[], conbin text",
    ),
    table(
        2607,
        "pg_conversion",
        "oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, contoencoding int4, conproc regproc, condefault bool",
    ),
    table(
        2608,
        "pg_depend",
        "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, deptype char",
    ),
    table(
        1214,
        "pg_shdepend",
        "dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, deptype char",
    ),
    table(
        2609,
        "pg_description",
        "objoid oid, classoid oid, objsubid int4, description text",
    ),
    table(2396, "pg_shdescription", "objoid oid, classoid oid, description text"),
    table(
        2610,
        "pg_index",
        "indexrelid oid, indrelid oid, indnatts int2, indnkeyatts int2, indisunique bool, indnullsnotdistinct bool, indisprimary bool, indisexclusion bool, indimmediate bool, indisclustered bool, indisvalid bool, indcheckxmin bool, indisready bool, indislive bool, indisreplident bool, indkey int2vector, indcollation oidvector, indclass oidvector, indoption int2vector, indexprs text, indpred text",
    ),
    table(
        2611,
        "pg_inherits",
        "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool",
    ),
    table(
        2612,
        "pg_language",
        "oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool, lanplcallfoid oid, laninline oid, lanvalidator oid, lanacl text[]",
    ),
    table(2995, "pg_largeobject_metadata", "oid oid, lomowner oid, lomacl text[]"),
    table(
        2615,
        "pg_namespace",
        "oid oid, nspname name, nspowner oid, nspacl text[]",
    ),
    table(
        2616,
        "pg_opclass",
        "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, opcdefault bool, opckeytype oid",
    ),
    table(
        2617,
        "pg_operator",
        "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char, oprcanmerge bool, oprcanhash bool, oprleft oid, oprright oid, oprresult oid, oprcom oid, oprnegate oid, oprcode regproc, oprrest regproc, oprjoin regproc",
    ),
    table(
        2753,
        "pg_opfamily",
        "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid",
    ),
    table(
        2618,
        "pg_rewrite",
        "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool, ev_qual text, ev_action text",
    ),
    table(
        2619,
        "pg_statistic",
        "starelid oid, staattnum int2, stainherit bool, stanullfrac float4, stawidth int4, stadistinct float4",
    ),
    table(
        2620,
        "pg_trigger",
        "oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal bool, tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, tgattr int2vector, tgargs bytea, tgqual text, tgoldtable name, tgnewtable name",
    ),
    table(
        3079,
        "pg_extension",
        "oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion text, extconfig oid[], extcondition text[]",
    ),
    table(
        3256,
        "pg_policy",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles oid[], polqual text, polwithcheck text",
    ),
    table(
        3350,
        "pg_partitioned_table",
        "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2vector, partclass oidvector, partcollation oidvector, partexprs text",
    ),
    table(
        3381,
        "pg_statistic_ext",
        "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys int2vector, stxkind char[], stxexprs text",
    ),
    table(
        3429,
        "pg_statistic_ext_data",
        "stxoid oid, stxdinherit bool, stxdndistinct text, stxddependencies text, stxdmcv text",
    ),
    table(
        3456,
        "pg_collation",
        "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, collisdeterministic bool, collencoding int4, collcollate text, collctype text, colliculocale text, collversion text",
    ),
    table(
        3466,
        "pg_event_trigger",
        "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags text[]",
    ),
    table(
        3501,
        "pg_enum",
        "oid oid, enumtypid oid, enumsortorder float4, enumlabel name",
    ),
    table(
        3541,
        "pg_range",
        "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, rngcanonical regproc, rngsubdiff regproc",
    ),
    table(
        3576,
        "pg_transform",
        "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc",
    ),
    table(
        3600,
        "pg_ts_dict",
        "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text",
    ),
    table(
        3601,
        "pg_ts_parser",
        "oid oid, prsname name, prsnamespace oid, prsstart regproc, prstoken regproc, prsend regproc, prsheadline regproc, prslextype regproc",
    ),
    table(
        3602,
        "pg_ts_config",
        "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid",
    ),
    table(
        3603,
        "pg_ts_config_map",
        "mapcfg oid, maptokentype int4, mapseqno int4, mapdict oid",
    ),
    table(
        3764,
        "pg_ts_template",
        "oid oid, tmplname name, tmplnamespace oid, tmplinit regproc, tmpllexize regproc",
    ),
    table(
        2964,
        "pg_db_role_setting",
        "setdatabase oid, setrole oid, setconfig text[]",
    ),
    table(
        826,
        "pg_default_acl",
        "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl text[]",
    ),
    table(
        12_072,
        "pg_seclabels",
        "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider text, label text",
    ),
    table(
        3394,
        "pg_init_privs",
        "objoid oid, classoid oid, objsubid int4, privtype char, initprivs text[]",
    ),
    table(
        6104,
        "pg_publication",
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, pubtruncate bool, pubviaroot bool",
    ),
    table(
        6106,
        "pg_publication_rel",
        "oid oid, prpubid oid, prrelid oid, prqual text, prattrs int2[]",
    ),
    table(6237, "pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    table(
        6100,
        "pg_subscription",
        "oid oid, subdbid oid, subskiplsn text, subname name, subowner oid, subenabled bool, subbinary bool, substream bool, subtwophasestate char, subdisableonerr bool, subconninfo text, subslotname name, subsynccommit text, subpublications text[]",
    ),
    table(
        2224,
        "pg_sequence",
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, seqcycle bool",
    ),
    table(
        3592,
        "pg_shseclabel",
        "objoid oid, classoid oid, provider text, label text",
    ),
    table(
        3596,
        "pg_seclabel",
        "objoid oid, classoid oid, objsubid int4, provider text, label text",
    ),
    view(
        12002,
        "pg_roles",
        "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text[], oid oid",
    ),
    view(
        12003,
        "pg_user",
        "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]",
    ),
    view(12004, "pg_group", "groname name, grosysid oid, grolist oid[]"),
    view(
        12005,
        "pg_tables",
        "schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, hastriggers bool, rowsecurity bool",
    ),
    view(
        12006,
        "pg_views",
        "schemaname name, viewname name, viewowner name, definition text",
    ),
    view(
        12007,
        "pg_matviews",
        "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated bool, definition text",
    ),
    view(
        12008,
        "pg_indexes",
        "schemaname name, tablename name, indexname name, tablespace name, indexdef text",
    ),
    view(
        12009,
        "pg_sequences",
        "schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8, min_value int8, max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8",
    ),
    view(
        12010,
        "pg_settings",
        "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text, source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool",
    ),
    view(
        12011,
        "pg_stat_user_tables",
        "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8",
    ),
    view(
        12012,
        "pg_timezone_names",
        "name text, abbrev text, utc_offset interval, is_dst bool",
    ),
    view(
        12013,
        "pg_available_extensions",
        "name name, default_version text, installed_version text, comment text",
    ),
    view(
        12014,
        "pg_rules",
        "schemaname name, tablename name, rulename name, definition text",
    ),
    view(
        12015,
        "pg_policies",
        "schemaname name, tablename name, policyname name, permissive text, roles name[], cmd text, qual text, with_check text",
    ),
    view(
        12016,
        "pg_cursors",
        "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz",
    ),
    view(
        12017,
        "pg_publication_tables",
        "pubname name, schemaname name, tablename name, attnames name[], rowfilter text",
    ),
    view(
        12030,
        "pg_stat_all_tables",
        "relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8, n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8, analyze_count int8, autoanalyze_count int8",
    ),
    view(
        12031,
        "pg_statio_user_tables",
        "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8",
    ),
    view(
        12032,
        "pg_statio_all_tables",
        "relid oid, schemaname name, relname name, heap_blks_read int8, heap_blks_hit int8, idx_blks_read int8, idx_blks_hit int8, toast_blks_read int8, toast_blks_hit int8, tidx_blks_read int8, tidx_blks_hit int8",
    ),
    view(
        12033,
        "pg_stat_user_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read int8, idx_tup_fetch int8",
    ),
    view(
        12034,
        "pg_stat_all_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read int8, idx_tup_fetch int8",
    ),
    view(
        12035,
        "pg_stat_activity",
        "datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text, backend_xid int8, backend_xmin int8, query_id int8, query text, backend_type text",
    ),
    view(
        12036,
        "pg_stat_database",
        "datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read int8, blks_hit int8, tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted int8, conflicts int8, temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, checksum_last_failure timestamptz, blk_read_time float8, blk_write_time float8, session_time float8, active_time float8, idle_in_transaction_time float8, sessions int8, sessions_abandoned int8, sessions_fatal int8, sessions_killed int8, stats_reset timestamptz",
    ),
    view(
        12037,
        "pg_locks",
        "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid int8, classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz",
    ),
    view(
        12038,
        "pg_stats",
        "schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, n_distinct float4, most_common_vals text, most_common_freqs float4[], histogram_bounds text, correlation float4, most_common_elems text, most_common_elem_freqs float4[], elem_count_histogram float4[]",
    ),
    view(
        12039,
        "pg_stat_replication",
        "pid int4, usesysid oid, usename name, application_name text, client_addr inet, client_hostname text, client_port int4, backend_start timestamptz, backend_xmin int8, state text, sent_lsn text, write_lsn text, flush_lsn text, replay_lsn text, write_lag interval, flush_lag interval, replay_lag interval, sync_priority int4, sync_state text, reply_time timestamptz",
    ),
    view(
        12040,
        "pg_replication_slots",
        "slot_name name, plugin name, slot_type text, datoid oid, database name, temporary bool, active bool, active_pid int4, xmin int8, catalog_xmin int8, restart_lsn text, confirmed_flush_lsn text, wal_status text, safe_wal_size int8, two_phase bool",
    ),
    view(
        12041,
        "pg_prepared_xacts",
        "transaction int8, gid text, prepared timestamptz, owner name, database name",
    ),
    view(
        12050,
        "pg_statio_user_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8",
    ),
    view(
        12051,
        "pg_stat_bgwriter",
        "checkpoints_timed int8, checkpoints_req int8, checkpoint_write_time float8, checkpoint_sync_time float8, buffers_checkpoint int8, buffers_clean int8, maxwritten_clean int8, buffers_backend int8, buffers_backend_fsync int8, buffers_alloc int8, stats_reset timestamptz",
    ),
    view(
        12052,
        "pg_stat_archiver",
        "archived_count int8, last_archived_wal text, last_archived_time timestamptz, failed_count int8, last_failed_wal text, last_failed_time timestamptz, stats_reset timestamptz",
    ),
    view(
        12053,
        "pg_shadow",
        "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text, valuntil timestamptz, useconfig text[]",
    ),
    view(
        12054,
        "pg_prepared_statements",
        "name text, statement text, prepare_time timestamptz, parameter_types regtype[], from_sql bool, generic_plans int8, custom_plans int8",
    ),
    view(
        12080,
        "pg_statio_all_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_blks_read int8, idx_blks_hit int8",
    ),
    view(
        12081,
        "pg_stat_user_functions",
        "funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8",
    ),
    view(
        12082,
        "pg_stat_xact_user_functions",
        "funcid oid, schemaname name, funcname name, calls int8, total_time float8, self_time float8",
    ),
    view(
        12083,
        "pg_stat_wal_receiver",
        "pid int4, status text, receive_start_lsn text, receive_start_tli int4, written_lsn text, flushed_lsn text, received_tli int4, last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, latest_end_lsn text, latest_end_time timestamptz, slot_name text, sender_host text, sender_port int4, conninfo text",
    ),
    view(
        12084,
        "pg_stat_subscription",
        "subid oid, subname name, pid int4, relid oid, received_lsn text, last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, latest_end_lsn text, latest_end_time timestamptz",
    ),
    view(
        12085,
        "pg_stat_database_conflicts",
        "datid oid, datname name, confl_tablespace int8, confl_lock int8, confl_snapshot int8, confl_bufferpin int8, confl_deadlock int8",
    ),
    view(
        12086,
        "pg_file_settings",
        "sourcefile text, sourceline int4, seqno int4, name text, setting text, applied bool, error text",
    ),
    view(
        12087,
        "pg_hba_file_rules",
        "line_number int4, type text, database text[], user_name text[], address text, netmask text, auth_method text, options text[], error text",
    ),
    view(12088, "pg_replication_origin", "roident oid, roname text"),
    view(
        12089,
        "pg_replication_origin_status",
        "local_id oid, external_id text, remote_lsn text, local_lsn text",
    ),
    view(
        12090,
        "pg_stats_ext",
        "schemaname name, tablename name, statistics_schemaname name, statistics_name name, statistics_owner name, attnames name[], exprs text[], kinds char[], inherited bool, n_distinct text, dependencies text, most_common_vals text[], most_common_val_nulls bool[], most_common_freqs float8[], most_common_base_freqs float8[]",
    ),
    view(
        12091,
        "pg_stat_progress_cluster",
        "pid int4, datid oid, datname name, relid oid, command text, phase text, cluster_index_relid oid, heap_tuples_scanned int8, heap_tuples_written int8, heap_blks_total int8, heap_blks_scanned int8, index_rebuild_count int8",
    ),
    view(
        12092,
        "pg_stat_progress_basebackup",
        "pid int4, phase text, backup_total int8, backup_streamed int8, tablespaces_total int8, tablespaces_streamed int8",
    ),
    view(
        12093,
        "pg_ident_file_mappings",
        "line_number int4, map_name text, sys_name text, pg_username text, error text",
    ),
    view(
        12055,
        "pg_available_extension_versions",
        "name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema name, requires name[], comment text",
    ),
    view(
        12056,
        "pg_timezone_abbrevs",
        "abbrev text, utc_offset interval, is_dst bool",
    ),
    table(2613, "pg_largeobject", "loid oid, pageno int4, data bytea"),
    standard(
        12101,
        "schemata",
        "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, default_character_set_schema name, default_character_set_name name, sql_path text",
    ),
    standard(
        12102,
        "tables",
        "table_catalog name, table_schema name, table_name name, table_type text, self_referencing_column_name name, reference_generation text, user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, is_insertable_into text, is_typed text, commit_action text",
    ),
    standard(
        12103,
        "columns",
        "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, column_default text, is_nullable text, data_type text, character_maximum_length int4, character_octet_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier text, is_self_referencing text, is_identity text, identity_generation text, identity_start text, identity_increment text, identity_maximum text, identity_minimum text, identity_cycle text, is_generated text, generation_expression text, is_updatable text",
    ),
    standard(
        12104,
        "views",
        "table_catalog name, table_schema name, table_name name, view_definition text, check_option text, is_updatable text, is_insertable_into text, is_trigger_updatable text, is_trigger_deletable text, is_trigger_insertable_into text",
    ),
    standard(
        12105,
        "table_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema name, table_name name, constraint_type text, is_deferrable text, initially_deferred text, enforced text, nulls_distinct text",
    ),
    standard(
        12106,
        "key_column_usage",
        "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, position_in_unique_constraint int4",
    ),
    standard(
        12107,
        "constraint_column_usage",
        "table_catalog name, table_schema name, table_name name, column_name name, constraint_catalog name, constraint_schema name, constraint_name name",
    ),
    standard(
        12108,
        "referential_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_catalog name, unique_constraint_schema name, unique_constraint_name name, match_option text, update_rule text, delete_rule text",
    ),
    standard(
        12109,
        "check_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, check_clause text",
    ),
    standard(
        12110,
        "routines",
        "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, routine_name name, routine_type text, module_catalog name, module_schema name, module_name name, udt_catalog name, udt_schema name, udt_name name, data_type text, character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, type_udt_catalog name, type_udt_schema name, type_udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, routine_body text, routine_definition text, external_name text, external_language text, parameter_style text, is_deterministic text, sql_data_access text, is_null_call text, sql_path text, schema_level_routine text, max_dynamic_result_sets int4, is_user_defined_cast text, is_implicitly_invocable text, security_type text, to_sql_specific_catalog name, to_sql_specific_schema name, to_sql_specific_name name, as_locator text, created timestamptz, last_altered timestamptz, new_savepoint_level text, is_udt_dependent text, result_cast_from_data_type text, result_cast_as_locator text, result_cast_char_max_length int4, result_cast_char_octet_length int4, result_cast_char_set_catalog name, result_cast_char_set_schema name, result_cast_char_set_name name, result_cast_collation_catalog name, result_cast_collation_schema name, result_cast_collation_name name, result_cast_numeric_precision int4, result_cast_numeric_precision_radix int4, result_cast_numeric_scale int4, result_cast_datetime_precision int4, result_cast_interval_type text, result_cast_interval_precision int4, result_cast_type_udt_catalog name, result_cast_type_udt_schema name, result_cast_type_udt_name name, result_cast_scope_catalog name, result_cast_scope_schema name, result_cast_scope_name name, result_cast_maximum_cardinality int4, result_cast_dtd_identifier name",
    ),
    standard(
        12111,
        "parameters",
        "specific_catalog name, specific_schema name, specific_name name, ordinal_position int4, parameter_mode text, is_result text, as_locator text, parameter_name name, data_type text, character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, parameter_default text",
    ),
    standard(
        12112,
        "sequences",
        "sequence_catalog name, sequence_schema name, sequence_name name, data_type text, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, start_value text, minimum_value text, maximum_value text, increment text, cycle_option text",
    ),
    standard(
        12113,
        "triggers",
        "trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation text, event_object_catalog name, event_object_schema name, event_object_table name, action_order int4, action_condition text, action_statement text, action_orientation text, action_timing text, action_reference_old_table name, action_reference_new_table name, action_reference_old_row name, action_reference_new_row name, created timestamptz",
    ),
    standard(
        12114,
        "table_privileges",
        "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type text, is_grantable text, with_hierarchy text",
    ),
    standard(
        12115,
        "column_privileges",
        "grantor name, grantee name, table_catalog name, table_schema name, table_name name, column_name name, privilege_type text, is_grantable text",
    ),
    standard(
        12116,
        "domains",
        "domain_catalog name, domain_schema name, domain_name name, data_type text, character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, domain_default text, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name",
    ),
    standard(12117, "enabled_roles", "role_name name"),
    standard(
        12118,
        "applicable_roles",
        "grantee name, role_name name, is_grantable text",
    ),
    standard(12119, "information_schema_catalog_name", "catalog_name name"),
    standard(
        12120,
        "character_sets",
        "character_set_catalog name, character_set_schema name, character_set_name name, character_repertoire name, form_of_use name, default_collate_catalog name, default_collate_schema name, default_collate_name name",
    ),
    standard(
        12121,
        "collations",
        "collation_catalog name, collation_schema name, collation_name name, pad_attribute text",
    ),
    standard(
        12130,
        "role_table_grants",
        "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type text, is_grantable text, with_hierarchy text",
    ),
    standard(
        12131,
        "role_column_grants",
        "grantor name, grantee name, table_catalog name, table_schema name, table_name name, column_name name, privilege_type text, is_grantable text",
    ),
    standard(
        12132,
        "constraint_table_usage",
        "table_catalog name, table_schema name, table_name name, constraint_catalog name, constraint_schema name, constraint_name name",
    ),
    standard(
        12133,
        "element_types",
        "object_catalog name, object_schema name, object_name name, object_type text, collection_type_identifier name, data_type text, character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, domain_default text, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name",
    ),
    standard(
        12134,
        "sql_features",
        "feature_id text, feature_name text, sub_feature_id text, sub_feature_name text, is_supported text, is_verified_by text, comments text",
    ),
    standard(
        12135,
        "view_table_usage",
        "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name name",
    ),
    standard(
        12136,
        "view_column_usage",
        "view_catalog name, view_schema name, view_name name, table_catalog name, table_schema name, table_name name, column_name name",
    ),
    standard(
        12137,
        "user_defined_types",
        "user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, user_defined_type_category text, is_instantiable text, is_final text, ordering_form text, ordering_category text, ordering_routine_catalog name, ordering_routine_schema name, ordering_routine_name name, reference_type text, data_type text, character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, source_dtd_identifier name, ref_dtd_identifier name",
    ),
    standard(
        12138,
        "attributes",
        "udt_catalog name, udt_schema name, udt_name name, attribute_name name, ordinal_position int4, attribute_default text, is_nullable text, data_type text, character_maximum_length int4, character_octet_length int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4, attribute_udt_catalog name, attribute_udt_schema name, attribute_udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, is_derived_reference_attribute text",
    ),
    standard(
        12139,
        "usage_privileges",
        "grantor name, grantee name, object_catalog name, object_schema name, object_name name, object_type text, privilege_type text, is_grantable text",
    ),
    standard(
        12140,
        "routine_privileges",
        "grantor name, grantee name, specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, routine_name name, privilege_type text, is_grantable text",
    ),
    standard(
        12141,
        "domain_constraints",
        "constraint_catalog name, constraint_schema name, constraint_name name, domain_catalog name, domain_schema name, domain_name name, is_deferrable text, initially_deferred text",
    ),
    standard(
        12142,
        "column_domain_usage",
        "domain_catalog name, domain_schema name, domain_name name, table_catalog name, table_schema name, table_name name, column_name name",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_has_a_type_and_every_table_a_number() {
        let mut oids = BTreeSet::new();
        for shape in all() {
            assert!(oids.insert(shape.oid), "{}", shape.name);
            let is_standard = crate::functions::STANDARD.contains(&i64::from(shape.oid));
            assert_eq!(is_standard, shape.schema == "information_schema", "{}", shape.name);
            for column in shape.text.split(',') {
                let (name, ty) = column.trim().split_once(' ').expect("a name and a type");
                assert!(Type::of_name(ty).is_some(), "{}.{name}: {ty}", shape.name);
            }
        }
    }
}
