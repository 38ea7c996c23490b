//! Users and roles: who there is, and what each may do.
//!
//! They are documents of `admin.system.users` and `admin.system.roles`, in MongoDB's form; commands change them
//! ([`crate::user_changes`]), and so does whoever may write to these collections (`mongorestore`). What they come to is kept until a commit touches them.
//!
//! Reading order: [`name`], [`restriction`], [`mod@account`] (pure), then here.

pub mod account;
pub mod name;
pub mod restriction;

pub use account::Account;
pub use name::{RoleName, UserName};

use crate::lock;
use crate::login::credential::Credential;
use crate::login::mechanism::Mechanism;
use crate::login::secret_bytes;
use nestor_exec::{Interrupt, point};
use nestor_model::namespace::{ADMIN, LOCAL};
use nestor_model::{Document, Namespace, Result, Value, ValueRef, doc};
use nestor_query::masking::Key;
use nestor_storage::log::{Interest, Kinds, Scope, Upto};
use nestor_storage::{Engine, LogPosition, LogReader, LogSignal, View, record};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// The collection of users.
pub fn users_namespace() -> Namespace {
    Namespace::new(ADMIN, "system.users")
}

/// The collection of roles.
pub fn roles_namespace() -> Namespace {
    Namespace::new(ADMIN, "system.roles")
}

/// Where the key of masked values is kept: no right on database `local` reaches it, and no dump has it.
pub fn masking_key_namespace() -> Namespace {
    Namespace::new(LOCAL, "system.version")
}

/// The `_id` of that key.
pub const MASKING_KEY_ID: &str = "maskingKey";

/// The key of masked values that was kept, if there is one.
fn stored_key(view: &dyn View) -> Result<Option<Key>> {
    let stored = document(view, &masking_key_namespace(), MASKING_KEY_ID)?;
    let key = stored.as_ref().and_then(|stored| stored.get("key"));
    Ok(match key {
        Some(ValueRef::Binary { bytes, .. }) => bytes.try_into().ok(),
        _ => None,
    })
}

/// The document of a user.
pub fn user_document(view: &dyn View, name: &UserName) -> Result<Option<Document>> {
    document(view, &users_namespace(), &name.id())
}

/// The document of a role; `None` for a built-in one.
pub fn role_document(view: &dyn View, name: &RoleName) -> Result<Option<Document>> {
    document(view, &roles_namespace(), &name.id())
}

/// The documents of users or roles in the order in which they are stored.
///
/// Errors: those of storage, and that of whoever interrupts.
pub fn documents(view: &dyn View, ns: &Namespace, interrupt: &Interrupt) -> Result<Vec<Document>> {
    let Some(collection) = view.catalog().get(ns) else {
        return Ok(Vec::new());
    };
    let mut out = Vec::new();
    let mut cursor = view.cursor(collection.records);
    let mut more = cursor.first()?;
    while more {
        out.push(record::document(cursor.value()?).as_doc().to_document());
        interrupt.check()?;
        more = cursor.next()?;
    }
    Ok(out)
}

fn document(view: &dyn View, ns: &Namespace, id: &str) -> Result<Option<Document>> {
    let Some(collection) = view.catalog().get(ns) else {
        return Ok(None);
    };
    let found = point::by_id(view, collection, ValueRef::String(id))?;
    Ok(found.map(|(_, bytes)| bytes.document().as_doc().to_document()))
}

/// The account of a user as `view` shows it.
pub fn account(view: &dyn View, name: &UserName) -> Result<Option<Account>> {
    let Some(user) = user_document(view, name)? else {
        return Ok(None);
    };
    let mut role = |name: &RoleName| role_document(view, name);
    Account::of(name.clone(), user.as_ref(), &mut role).map(Some)
}

/// Says when what is known of users may have changed.
///
/// It follows the log for database `admin`, where little is written; asking costs a few loads while nothing is.
struct Changes {
    reader: Mutex<LogReader>,
    signal: LogSignal,
    generation: AtomicU64,
}

impl Changes {
    fn new(engine: &Engine) -> Self {
        let scope = Scope::Database(ADMIN.into());
        let interest = Interest::new(scope, Kinds::CHANGES, Upto::Accepted);
        let mut reader = engine.read_log(LogPosition::after(engine.last_optime()), interest);
        let signal = reader.signal();
        Self {
            reader: Mutex::new(reader),
            signal,
            generation: AtomicU64::new(0),
        }
    }

    /// A number that is greater once a commit that snapshots show may have changed users or roles. What is read after asking is at
    /// least as new as the number.
    fn generation(&self) -> u64 {
        if self.signal.has_news() {
            let mut reader = lock(&self.reader);
            // Before, so that nobody takes for new what was kept until now; and after, so that nobody keeps what was read before a commit
            // that is passed over here. Who waited for the lock need not do it again; more generations do no harm.
            self.generation.fetch_add(1, Ordering::AcqRel);
            reader.skip_to_end();
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        self.generation.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct Known {
    generation: u64,
    accounts: HashMap<UserName, Arc<Account>>,
    any: Option<bool>,
}

/// Most names that are kept; names of users that do not exist are not among them.
const KNOWN_MAX: usize = 10_000;

/// The accounts that were read so far.
pub struct Users {
    engine: Engine,
    changes: Changes,
    known: RwLock<Known>,
    /// The secret from which salts of users that do not exist are derived.
    secret: OnceLock<[u8; 32]>,
    /// The user of the cluster's key, if there is one.
    cluster: OnceLock<Arc<Account>>,
    /// The key by which masked values are hashed.
    masking_key: Arc<OnceLock<Key>>,
    making_key: Mutex<()>,
    making_first: Mutex<()>,
}

impl Users {
    /// The users of a store.
    pub fn new(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            changes: Changes::new(engine),
            known: RwLock::default(),
            secret: OnceLock::new(),
            cluster: OnceLock::new(),
            // Without a key that can be read hashes are null: nothing is shown that should not be.
            masking_key: Arc::new(match stored_key(&engine.snapshot()) {
                Ok(Some(key)) => OnceLock::from(key),
                _ => OnceLock::new(),
            }),
            making_key: Mutex::default(),
            making_first: Mutex::default(),
        }
    }

    /// The key by which masked values are hashed; it is there once there is a masking policy.
    pub fn masking_key(&self) -> &Arc<OnceLock<Key>> {
        &self.masking_key
    }

    /// For whoever makes that key: nobody else does so meanwhile.
    pub fn making_key(&self) -> MutexGuard<'_, ()> {
        lock(&self.making_key)
    }

    /// For whoever makes the first user or role without having logged in: nobody else does so meanwhile. To be asked for before
    /// [`Users::any`], and held until the user is stored.
    pub fn making_first(&self) -> MutexGuard<'_, ()> {
        lock(&self.making_first)
    }

    /// Lets whoever has the cluster's key log in as `__system`. The first key stays.
    ///
    /// Errors: those of making credentials.
    pub fn set_cluster_key(&self, key: &str) -> Result<()> {
        let account = Arc::new(Account::of_cluster(key)?);
        self.cluster.get_or_init(|| account);
        Ok(())
    }

    /// A number that is greater once users or roles may have changed.
    pub fn generation(&self) -> u64 {
        self.changes.generation()
    }

    /// The account of a user, with the generation that it is of.
    ///
    /// Errors: those of reading.
    pub fn account(&self, name: &UserName) -> Result<(Option<Arc<Account>>, u64)> {
        let generation = self.generation();
        if let Some(cluster) = self.cluster.get().filter(|cluster| cluster.name == *name) {
            return Ok((Some(cluster.clone()), generation));
        }
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.generation == generation {
                if let Some(account) = known.accounts.get(name) {
                    return Ok((Some(account.clone()), generation));
                }
            }
        }
        let account = account(&self.engine.snapshot(), name)?.map(|account| account.hashing_by(&self.masking_key));
        let account = account.map(Arc::new);
        if let Some(account) = &account {
            self.keep(generation, |known| {
                if known.accounts.len() >= KNOWN_MAX {
                    known.accounts.clear();
                }
                known.accounts.insert(name.clone(), account.clone());
            });
        }
        Ok((account, generation))
    }

    /// The account of who acts as a role of database `admin` that is no user's; `None` if there is no such role.
    ///
    /// Errors: those of reading.
    pub fn account_of_role(&self, role: &str) -> Result<Option<Account>> {
        let snapshot = self.engine.snapshot();
        let own = RoleName::new(role, ADMIN);
        if role == account::PUBLIC || role_document(&snapshot, &own)?.is_none() {
            return Ok(None);
        }
        let as_user = doc! { "roles": vec![Value::from(own.to_document())] };
        let mut find = |name: &RoleName| role_document(&snapshot, name);
        let account = Account::of(UserName::new(role, ADMIN), as_user.as_ref(), &mut find)?;
        Ok(Some(account.hashing_by(&self.masking_key)))
    }

    /// Whether there is any user or role. Without one, who comes from this machine may make the first.
    ///
    /// Errors: those of reading.
    pub fn any(&self) -> Result<bool> {
        let generation = self.generation();
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let (true, Some(any)) = (known.generation == generation, known.any) {
                return Ok(any);
            }
        }
        let snapshot = self.engine.snapshot();
        let mut any = false;
        for ns in [users_namespace(), roles_namespace()] {
            if let Some(collection) = snapshot.catalog().get(&ns) {
                any |= snapshot.cursor(collection.records).first()?;
            }
        }
        self.keep(generation, |known| known.any = Some(any));
        Ok(any)
    }

    /// The credential by which a client is challenged that wants to log in as `name`: that of the user's account, or one that belongs to nobody and
    /// has `iterations`, those of passwords that are set now.
    ///
    /// What is done for users that do not exist is done for the others too: they are looked for in the store, and a credential is made up. It would show
    /// in the time otherwise (about 12 µs) which names there are.
    ///
    /// Errors: 1 when there is no randomness; those of reading.
    pub fn credential(
        &self,
        (mechanism, iterations): (Mechanism, u32),
        name: &UserName,
        account: Option<&Account>,
    ) -> Result<Credential> {
        let made_up = Credential::decoy((mechanism, iterations), self.secret()?, &name.db, &name.user);
        let made_up = black_box(made_up);
        let Some(account) = account else { return Ok(made_up) };
        black_box(user_document(&self.engine.snapshot(), name)?);
        let mut all = account.credentials.iter();
        let own = all.find(|credential| credential.mechanism == mechanism).cloned();
        Ok(own.unwrap_or(made_up))
    }

    /// Whether `password` is that of a user. By each mechanism it is compared with a credential, with one that nobody has where the user
    /// has none, so that an attempt takes as long whoever is named. The newest mechanism that the user has decides. `iterations` are those of passwords that
    /// are set now.
    ///
    /// Errors: those of [`Users::credential`].
    pub fn is_password(
        &self,
        name: &UserName,
        account: Option<&Account>,
        password: &str,
        iterations: impl Fn(Mechanism) -> u32,
    ) -> Result<bool> {
        let mut is_own = false;
        for mechanism in Mechanism::ALL {
            let credential = self.credential((mechanism, iterations(mechanism)), name, account)?;
            let fits = credential.is_of(&name.user, password);
            if !credential.is_decoy() {
                is_own = fits;
            }
        }
        Ok(is_own)
    }

    fn secret(&self) -> Result<&[u8; 32]> {
        if let Some(secret) = self.secret.get() {
            return Ok(secret);
        }
        let fresh = secret_bytes()?;
        Ok(self.secret.get_or_init(|| fresh))
    }

    /// The mechanisms by which a user can log in; none for users that do not exist.
    ///
    /// Errors: those of reading.
    pub fn mechanisms(&self, name: &UserName) -> Result<Vec<Mechanism>> {
        let (account, _) = self.account(name)?;
        Ok(account.map_or_else(Vec::new, |account| account.mechanisms().collect()))
    }

    /// Keeps something that was read after `generation` was asked for.
    fn keep(&self, generation: u64, what: impl FnOnce(&mut Known)) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.generation > generation {
            return;
        }
        if known.generation < generation {
            *known = Known {
                generation,
                ..Known::default()
            };
        }
        what(&mut known);
    }
}
