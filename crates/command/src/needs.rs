//! The rights that commands need: a column of the table of commands ([`Facts::needs`](crate::facts::Facts::needs)).
//!
//! Commands that read or write documents say themselves what they need ([`Service::access`](crate::Service::access)). What others
//! need stands in their rows, and where it follows from the arguments it is a function of this file.
//!
//! Source: manual, "Privilege Actions", and "Required Access" or "Access Control" of each command's page.

use crate::collection_at::{CollectionAt, collection_text};
use crate::generic_names::is_generic;
use crate::request::Sequence;
use nestor_database::rights::Action::*;
use nestor_database::rights::grant::is_system;
use nestor_database::rights::{Action, Actions, Grant, Privilege, Resource, Right, Scope};
use nestor_database::users::{Account, RoleName, UserName};
use nestor_model::namespace::ADMIN;
use nestor_model::{Namespace, RawDoc, Str, ValueRef};
use nestor_query::stage::{ParseContext, Pipeline, Place};

/// The rights that a command needs.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// Its row does not say, so nobody may run it.
    Unknown,
    /// Nothing: clients send it before they log in.
    Nothing,
    /// That somebody is logged in; what it shows and ends is that user's own, unless a right says more.
    Login,
    /// This right, whatever its arguments are.
    Right(Right),
    /// These actions on the collection that it names, if they can be told without understanding all of its words; else what it says
    /// itself.
    Usually(fn(&Asked<'_>) -> Option<Actions>),
    /// The command names them itself.
    Operation,
    /// They follow from its arguments.
    Arguments(fn(&Asked<'_>, &mut Wanted)),
}

/// A command whose rights are asked for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Where it names its collection.
    pub collection: CollectionAt,
    /// The database that it is sent to.
    pub db: &'a str,
    /// Its words.
    pub body: RawDoc<'a>,
    /// Document sequences that came with them.
    pub sequences: &'a [Sequence<'a>],
    /// The user who wants to run it.
    pub account: &'a Account,
}

/// The rights that it needs.
pub type Wanted = Vec<Privilege>;

impl Needs {
    /// This action on the collection that the command names.
    pub const fn collection(action: Action) -> Self {
        Self::right(action, Scope::Collection)
    }

    /// This action on the database that the command is sent to.
    pub const fn database(action: Action) -> Self {
        Self::right(action, Scope::Database)
    }

    /// This action on the server.
    pub const fn server(action: Action) -> Self {
        Self::right(action, Scope::Cluster)
    }

    const fn right(action: Action, on: Scope) -> Self {
        Self::Right(Right { action, on })
    }
}

impl Asked<'_> {
    /// The resource of a right.
    fn resource(&self, right: Right) -> Resource {
        match right.on {
            Scope::Cluster => Resource::Cluster,
            Scope::Database => Resource::Database(self.db.into()),
            Scope::Collection => match self.collection.named(self.db, self.body) {
                Some((db, coll)) => Resource::Collection(Namespace::new(db, coll)),
                // It names none, and will be refused; whoever has the right on the database may hear why.
                None => Resource::Database(self.db.into()),
            },
        }
    }

    /// Whether it names its collection by a UUID, of which nobody can tell whether it is a system collection.
    pub fn is_by_uuid(&self) -> bool {
        self.collection == CollectionAt::First && matches!(self.first(), Some(ValueRef::Binary { .. }))
    }

    /// Whether this right was given.
    pub fn has(&self, right: Right) -> bool {
        self.account.grants.on(&self.resource(right)).has(right.action)
    }

    /// The collection, and what is needed on it, of a command that names it, not by a UUID, and validates what it writes.
    pub fn usual(&self, actions: fn(&Self) -> Option<Actions>) -> Option<(Namespace, Actions)> {
        let bypass = self.body.get("bypassDocumentValidation");
        let (db, coll) = self.collection.named(self.db, self.body)?;
        match bypass.is_some_and(ValueRef::truthy) {
            true => None,
            false => actions(self).map(|actions| (Namespace::new(db, coll), actions)),
        }
    }

    /// All that is needed, where that can be told without understanding all words.
    pub fn wanted(&self, needs: Needs) -> Wanted {
        let mut wanted = Wanted::new();
        match needs {
            Needs::Unknown | Needs::Nothing | Needs::Login | Needs::Operation => {}
            Needs::Right(right) => want(self.resource(right), right.action, &mut wanted),
            Needs::Usually(actions) => {
                if let Some((ns, actions)) = self.usual(actions) {
                    actions.iter().for_each(|action| want_on(&ns, action, &mut wanted));
                }
            }
            Needs::Arguments(which) => which(self, &mut wanted),
        }
        wanted
    }

    /// Whether a pipeline reads nothing but the collection that it is on: it has none but stages that are known to.
    fn is_plain_pipeline(&self) -> bool {
        let is_plain = |stage: ValueRef<'_>| {
            let name = stage.as_document().and_then(|stage| stage.iter().next());
            name.is_some_and(|(name, _)| PLAIN_STAGES.contains(&name))
        };
        let pipeline = self.body.get("pipeline").and_then(ValueRef::as_array);
        pipeline.is_some_and(|pipeline| pipeline.iter().all(is_plain))
    }

    /// Whether one of the statements that stand in `field`, or came beside the command, has something set.
    fn has_statement_with(&self, field: &str, set: &str) -> bool {
        let is_set = |value: Option<ValueRef<'_>>| value.is_some_and(ValueRef::truthy);
        let inside = self.body.get(field).and_then(ValueRef::as_array);
        let mut inside = inside.into_iter().flat_map(|array| array.iter());
        let mut beside = self.sequences.iter().filter(|sequence| sequence.name == field);
        inside.any(|statement| statement.as_document().is_some_and(|doc| is_set(doc.get(set))))
            || beside.any(|sequence| sequence.documents.iter().any(|doc| is_set(doc.get(set))))
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.body.get(field).and_then(ValueRef::as_str)
    }

    fn first(&self) -> Option<ValueRef<'_>> {
        self.body.iter().next().map(|(_, value)| value)
    }

    fn namespace(&self) -> Namespace {
        let (db, coll) = self.collection.named(self.db, self.body).unwrap_or((self.db, ""));
        Namespace::new(db, coll)
    }

    fn own_database(&self, action: Action, wanted: &mut Wanted) {
        want_in(self.db, action, wanted);
    }

    /// The action on the database of each role that `roles` names. What is no name will be refused later.
    fn roles(&self, action: Action, wanted: &mut Wanted) {
        let roles = self.body.get("roles").and_then(ValueRef::as_array);
        for role in roles.into_iter().flat_map(|roles| roles.iter()) {
            if let Ok(role) = RoleName::parse(role, self.db) {
                want_in(&role.db, action, wanted);
            }
        }
    }

    /// The action on the database of each privilege that `privileges` names; `admin` for what reaches beyond one database.
    fn privileges(&self, action: Action, wanted: &mut Wanted) {
        let privileges = self.body.get("privileges").and_then(ValueRef::as_array);
        for privilege in privileges.into_iter().flat_map(|privileges| privileges.iter()) {
            let grant = privilege.as_document().and_then(|doc| Grant::parse(doc).ok());
            if let Some(grant) = grant {
                want_in(grant.on.database().unwrap_or(ADMIN), action, wanted);
            }
        }
    }
}

/// Stages that read the documents which come to them and nothing else.
const PLAIN_STAGES: [&str; 22] = [
    "$addFields",
    "$bucket",
    "$bucketAuto",
    "$count",
    "$densify",
    "$fill",
    "$geoNear",
    "$group",
    "$limit",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$sample",
    "$set",
    "$setWindowFields",
    "$skip",
    "$sort",
    "$sortByCount",
    "$unset",
    "$unwind",
];

/// To read documents.
pub fn find(_asked: &Asked<'_>) -> Option<Actions> {
    Some(const { Actions::of(&[Find]) })
}

/// To read documents, if a pipeline reads nothing else.
pub fn aggregate(asked: &Asked<'_>) -> Option<Actions> {
    asked.is_plain_pipeline().then_some(const { Actions::of(&[Find]) })
}

/// To add documents.
pub fn insert(_asked: &Asked<'_>) -> Option<Actions> {
    Some(const { Actions::of(&[Insert]) })
}

/// To remove documents.
pub fn delete(_asked: &Asked<'_>) -> Option<Actions> {
    Some(const { Actions::of(&[Remove]) })
}

/// To change documents, and to insert those that are not there.
pub fn update(asked: &Asked<'_>) -> Option<Actions> {
    Some(match asked.has_statement_with("updates", "upsert") {
        true => const { Actions::of(&[Insert, Update]) },
        false => const { Actions::of(&[Update]) },
    })
}

/// To read one document, and to change or remove it.
pub fn find_and_modify(asked: &Asked<'_>) -> Option<Actions> {
    let is_on = |field: &str| asked.body.get(field).is_some_and(ValueRef::truthy);
    Some(match (is_on("remove"), is_on("upsert")) {
        (true, _) => const { Actions::of(&[Find, Remove]) },
        (false, true) => const { Actions::of(&[Find, Insert, Update]) },
        (false, false) => const { Actions::of(&[Find, Update]) },
    })
}

fn want(resource: Resource, action: Action, wanted: &mut Wanted) {
    wanted.push(Privilege { resource, action });
}

fn want_in(db: &str, action: Action, wanted: &mut Wanted) {
    want(Resource::Database(Str::from(db)), action, wanted);
}

fn want_on(ns: &Namespace, action: Action, wanted: &mut Wanted) {
    want(Resource::Collection(ns.clone()), action, wanted);
}

/// A view lets its makers read what it is on if they may read the view, so they need the right to.
///
/// On system collections they need that right in any case. Whoever administers collections but not users could make a view of
/// `admin.system.users` otherwise, which all who may read the database's collections could read.
///
/// Source: manual, "create", "Access Control".
fn want_view(asked: &Asked<'_>, wanted: &mut Wanted) {
    let is_readable = asked.account.grants.on_collection(&asked.namespace()).has(Find);
    let mut want_to_read = |ns: Namespace| {
        if is_readable || is_system(&ns.db, &ns.coll) {
            want_on(&ns, Find, wanted);
        }
    };
    if let Some(on) = asked.text("viewOn") {
        want_to_read(Namespace::new(asked.db, on));
    }
    let pipeline = asked.body.get("pipeline").and_then(ValueRef::as_array);
    let Some(pipeline) = pipeline else { return };
    let mut named = Vec::new();
    let mut scope = nestor_query::env::Scope::new();
    let mut context = ParseContext::new(&mut scope, asked.namespace(), Place::View);
    match Pipeline::parse(pipeline, &mut context) {
        Ok(pipeline) => pipeline.involved_namespaces(&mut named),
        // It will be refused.
        Err(_) => return,
    }
    named.into_iter().for_each(want_to_read);
}

/// To make a collection or a view.
pub fn create(asked: &Asked<'_>, wanted: &mut Wanted) {
    let given = asked.account.grants.on_collection(&asked.namespace());
    let is_plain = asked.text("viewOn").is_none() && !asked.body.get("capped").is_some_and(ValueRef::truthy);
    // Inserting makes a collection that is not there, too.
    let action = if is_plain && given.has(Insert) {
        Insert
    } else {
        CreateCollection
    };
    want_on(&asked.namespace(), action, wanted);
    want_policies(asked, wanted);
    if asked.body.get("capped").is_some_and(ValueRef::truthy) {
        want_on(&asked.namespace(), ConvertToCapped, wanted);
    }
    want_view(asked, wanted);
}

/// To say who sees what of a collection, if that is asked; whether it is.
fn want_policies(asked: &Asked<'_>, wanted: &mut Wanted) -> bool {
    let each = [("masking", ChangeMasking), ("rowSecurity", ChangeRowSecurity)];
    let said: Vec<_> = each
        .into_iter()
        .filter(|(name, _)| asked.body.get(name).is_some())
        .collect();
    for (_, action) in &said {
        want_on(&asked.namespace(), *action, wanted);
    }
    !said.is_empty()
}

/// To change a collection.
pub fn coll_mod(asked: &Asked<'_>, wanted: &mut Wanted) {
    // Changing policies and administering collections are separate rights.
    let changes_policies = want_policies(asked, wanted);
    let is_other = |name: &str| !matches!(name, "masking" | "rowSecurity") && !is_generic(name);
    if !changes_policies || asked.body.iter().skip(1).any(|(name, _)| is_other(name)) {
        want_on(&asked.namespace(), CollMod, wanted);
    }
    want_view(asked, wanted);
}

/// To copy a collection into a capped one.
pub fn clone_as_capped(asked: &Asked<'_>, wanted: &mut Wanted) {
    let from = asked.first().and_then(collection_text).unwrap_or_default();
    let to = Namespace::new(asked.db, asked.text("toCollection").unwrap_or_default());
    want_on(&Namespace::new(asked.db, from), Find, wanted);
    for action in [Insert, CreateIndex, ConvertToCapped] {
        want_on(&to, action, wanted);
    }
}

/// To give a collection another name.
pub fn rename(asked: &Asked<'_>, wanted: &mut Wanted) {
    let split = |name: &str| name.split_once('.').map(|(db, coll)| Namespace::new(db, coll));
    let from = asked.first().and_then(ValueRef::as_str).and_then(split);
    let to = asked.text("to").and_then(split);
    let (Some(from), Some(to)) = (from, to) else {
        // It will be refused.
        return;
    };
    let drops = asked.body.get("dropTarget").is_some_and(ValueRef::truthy);
    let is_own_business = [&from, &to].iter().all(|ns| !is_system(&ns.db, &ns.coll));
    if from.db == to.db && is_own_business {
        // A rename must not let its user read what that user could not read before.
        want_in(&from.db, RenameCollectionSameDb, wanted);
        if asked.account.grants.on_collection(&to).has(Find) {
            want_on(&from, Find, wanted);
        }
    } else {
        want_on(&from, Find, wanted);
        want_on(&from, DropCollection, wanted);
        for action in [Insert, CreateIndex] {
            want_on(&to, action, wanted);
        }
    }
    if drops {
        want_on(&to, DropCollection, wanted);
    }
}

/// Whoever asks for no more than names, and of those collections only that may be read, needs no right.
pub fn list_collections(asked: &Asked<'_>, wanted: &mut Wanted) {
    let is_on = |field: &str| asked.body.get(field).is_some_and(ValueRef::truthy);
    if !(is_on("nameOnly") && is_on("authorizedCollections")) {
        asked.own_database(ListCollections, wanted);
    }
}

/// To change a user.
pub fn update_user(asked: &Asked<'_>, wanted: &mut Wanted) {
    let name = asked.first().and_then(ValueRef::as_str).unwrap_or_default();
    let is_own = asked.account.name == UserName::new(name, asked.db);
    let given = asked.account.grants.on(&Resource::Database(asked.db.into()));
    let own_or = |own: Action, any: Action| match is_own && given.has(own) {
        true => own,
        false => any,
    };
    let mut is_any = false;
    for (field, action) in [
        ("pwd", own_or(ChangeOwnPassword, ChangePassword)),
        ("mechanisms", own_or(ChangeOwnPassword, ChangePassword)),
        ("customData", own_or(ChangeOwnCustomData, ChangeCustomData)),
        ("authenticationRestrictions", SetAuthenticationRestriction),
        ("roles", RevokeRole),
    ] {
        if asked.body.get(field).is_some() {
            asked.own_database(action, wanted);
            is_any = true;
        }
    }
    asked.roles(GrantRole, wanted);
    if !is_any {
        asked.own_database(ChangeCustomData, wanted);
    }
}

/// To check what the catalog says of a collection, a database or all of them.
pub fn validate_metadata(asked: &Asked<'_>, wanted: &mut Wanted) {
    let resource = match (asked.text("db"), asked.text("collection")) {
        (Some(db), Some(coll)) => Resource::Collection(Namespace::new(db, coll)),
        (Some(db), None) => Resource::Database(db.into()),
        (None, _) => Resource::AllCollections,
    };
    want(resource, Validate, wanted);
}

/// Everybody may see their own operations.
pub fn current_op(asked: &Asked<'_>, wanted: &mut Wanted) {
    if !asked.body.get("$ownOps").is_some_and(ValueRef::truthy) {
        want(Resource::Cluster, Inprog, wanted);
    }
}

/// To add a user, who may have roles.
pub fn create_user(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.own_database(CreateUser, wanted);
    asked.roles(GrantRole, wanted);
}

/// To add a role.
pub fn create_role(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.own_database(CreateRole, wanted);
    asked.roles(GrantRole, wanted);
    asked.privileges(GrantRole, wanted);
}

/// To change a role, which loses what it had.
pub fn update_role(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.own_database(RevokeRole, wanted);
    asked.roles(GrantRole, wanted);
    asked.privileges(GrantRole, wanted);
}

/// To give the roles that are named.
pub fn grant_roles(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.roles(GrantRole, wanted);
}

/// To take the roles that are named.
pub fn revoke_roles(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.roles(RevokeRole, wanted);
}

/// To give a role the privileges that are named.
pub fn grant_privileges(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.privileges(GrantRole, wanted);
}

/// To take the privileges that are named from a role.
pub fn revoke_privileges(asked: &Asked<'_>, wanted: &mut Wanted) {
    asked.privileges(RevokeRole, wanted);
}

/// It makes, changes and gives whatever there is.
pub fn merge(asked: &Asked<'_>, wanted: &mut Wanted) {
    for action in [CreateUser, CreateRole, GrantRole, RevokeRole] {
        want(Resource::AllCollections, action, wanted);
    }
    if asked.body.get("drop").is_some_and(ValueRef::truthy) {
        want(Resource::AllCollections, DropUser, wanted);
        want(Resource::AllCollections, DropRole, wanted);
    }
    for field in ["tempUsersCollection", "tempRolesCollection"] {
        let name = asked.text(field).and_then(|name| name.split_once('.'));
        if let Some((db, coll)) = name {
            want_on(&Namespace::new(db, coll), Find, wanted);
        }
    }
}

/// Everybody may see what is known of themselves.
pub fn users_info(asked: &Asked<'_>, wanted: &mut Wanted) {
    let mut name = |value: ValueRef<'_>| match UserName::parse(value, asked.db) {
        Ok(name) if name == asked.account.name => {}
        Ok(name) => want_in(&name.db, ViewUser, wanted),
        // It will be refused.
        Err(_) => {}
    };
    match asked.first() {
        Some(ValueRef::Array(names)) => names.iter().for_each(name),
        Some(ValueRef::Document(doc)) if doc.get("forAllDBs").is_some() => {
            want(Resource::AllCollections, ViewUser, wanted);
        }
        Some(one @ (ValueRef::String(_) | ValueRef::Document(_))) => name(one),
        _ => asked.own_database(ViewUser, wanted),
    }
}

/// Everybody may see the roles that they have.
pub fn roles_info(asked: &Asked<'_>, wanted: &mut Wanted) {
    let mut name = |value: ValueRef<'_>| match RoleName::parse(value, asked.db) {
        Ok(name) if asked.account.all_roles.contains(&name) => {}
        Ok(name) => want_in(&name.db, ViewRole, wanted),
        Err(_) => {}
    };
    match asked.first() {
        Some(ValueRef::Array(names)) => names.iter().for_each(name),
        Some(one @ (ValueRef::String(_) | ValueRef::Document(_))) => name(one),
        _ => asked.own_database(ViewRole, wanted),
    }
}
