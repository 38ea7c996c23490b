"""Client-side field level encryption of an unmodified driver: the client encrypts, the server stores, compares and validates what it
cannot read. The key is the client's own, so that nothing outside of this machine is asked.

Source: manual, "Client-Side Field Level Encryption"; specification "Client Side Encryption", whose test plan has explicit encryption
with a local key, unique names of keys and rewrapping.
"""

import os

import bson
import pytest
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions
from pymongo.errors import DuplicateKeyError, OperationFailure, WriteError

pytest.importorskip("pymongocrypt", reason="the library that the driver encrypts with is not here")

from pymongo.encryption import Algorithm, ClientEncryption  # noqa: E402
from pymongo.encryption_options import AutoEncryptionOpts  # noqa: E402

VAULT = "encryption.keys"
OPTIONS = CodecOptions(uuid_representation=UuidRepresentation.STANDARD)
ENCRYPTED = 6
PEOPLE = [("ann", "123-45-6789"), ("bob", "987-65-4321"), ("cid", "123-45-6789")]


@pytest.fixture
def vault(start):
    """A server, its client, and who encrypts with a key of the client."""
    server = start(None)
    client = server.client()
    # As drivers ask users to make it: no two keys have one name.
    keys = client.encryption.keys
    keys.create_index("keyAltNames", unique=True, partialFilterExpression={"keyAltNames": {"$exists": True}})
    providers = {"local": {"key": os.urandom(96)}}
    with ClientEncryption(providers, VAULT, client, OPTIONS) as encryption:
        yield server, client, encryption, providers


def test_values_are_encrypted_and_found_and_decrypted(vault):
    server, client, encryption, providers = vault
    key = encryption.create_data_key("local", key_alt_names=["people"])
    docs = client.encrypted.people
    for name, ssn in PEOPLE:
        docs.insert_one(
            {
                "name": name,
                "ssn": encryption.encrypt(ssn, Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic, key_id=key),
                "notes": encryption.encrypt(["private", name], Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random, key_alt_name="people"),
            }
        )
    stored = list(docs.find().sort("name"))
    assert {type(one[field]).__name__ for one in stored for field in ("ssn", "notes")} == {"Binary"}
    assert {one[field].subtype for one in stored for field in ("ssn", "notes")} == {ENCRYPTED}
    assert b"123-45" not in b"".join(map(bson.encode, stored)) and b"private" not in b"".join(map(bson.encode, stored))
    # What is encrypted the same way each time is found, by an index too, and grouped.
    docs.create_index("ssn")
    wanted = encryption.encrypt("123-45-6789", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic, key_id=key)
    assert [one["name"] for one in docs.find({"ssn": wanted}).sort("name")] == ["ann", "cid"]
    assert docs.find({"ssn": wanted}).explain()["queryPlanner"]["winningPlan"]["inputStage"]["stage"] == "IXSCAN"
    groups = docs.aggregate([{"$group": {"_id": "$ssn", "n": {"$sum": 1}}}, {"$sort": {"n": 1}}])
    assert [group["n"] for group in groups] == [1, 2]
    assert docs.count_documents({"ssn": {"$type": "binData"}}) == 3
    assert encryption.decrypt(stored[1]["notes"]) == ["private", "bob"]
    # A client that only decrypts by itself reads the values as they were.
    options = AutoEncryptionOpts(providers, VAULT, bypass_auto_encryption=True)
    reader = server.client(auto_encryption_opts=options)
    read = [(one["name"], one["ssn"], one["notes"]) for one in reader.encrypted.people.find().sort("name")]
    assert read == [(name, ssn, ["private", name]) for name, ssn in PEOPLE]
    read = reader.encrypted.people.aggregate([{"$match": {"ssn": wanted}}, {"$sort": {"name": 1}}])
    assert [one["ssn"] for one in read] == ["123-45-6789"] * 2


def test_names_of_keys_are_unique_and_keys_are_wrapped_again(vault):
    _, client, encryption, _ = vault
    key = encryption.create_data_key("local", key_alt_names=["one"])
    with pytest.raises(Exception) as caught:
        encryption.create_data_key("local", key_alt_names=["one"])
    assert isinstance(getattr(caught.value, "cause", caught.value), DuplicateKeyError)
    assert encryption.add_key_alt_name(key, "two")["_id"] == key
    assert encryption.get_key_by_alt_name("two")["_id"] == key
    assert encryption.remove_key_alt_name(key, "two")["keyAltNames"] == ["one", "two"]
    assert encryption.get_key_by_alt_name("two") is None
    value = encryption.encrypt("kept", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random, key_id=key)
    before = client.encryption.keys.find_one({"keyAltNames": "one"})["keyMaterial"]
    assert encryption.rewrap_many_data_key({}, provider="local").bulk_write_result.modified_count == 1
    assert client.encryption.keys.find_one({"keyAltNames": "one"})["keyMaterial"] != before
    assert encryption.decrypt(value) == "kept"
    assert [one["_id"] for one in encryption.get_keys()] == [key]
    assert encryption.delete_key(key).deleted_count == 1
    assert client.encryption.keys.count_documents({}) == 0


def test_a_schema_takes_what_is_encrypted_only(vault):
    _, client, encryption, _ = vault
    key = encryption.create_data_key("local")
    encrypt = {"bsonType": "string", "algorithm": Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic, "keyId": [key]}
    schema = {"bsonType": "object", "properties": {"ssn": {"encrypt": encrypt}}}
    db = client.get_database("schemas", codec_options=OPTIONS)
    db.create_collection("people", validator={"$jsonSchema": schema})
    with pytest.raises(WriteError) as caught:
        db.people.insert_one({"ssn": "123-45-6789"})
    assert caught.value.code == 121
    value = encryption.encrypt("123-45-6789", Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic, key_id=key)
    db.people.insert_one({"ssn": value})
    # A number that is encrypted is not a string that is.
    number = encryption.encrypt(5, Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Deterministic, key_id=key)
    with pytest.raises(WriteError) as caught:
        db.people.insert_one({"ssn": number})
    assert caught.value.code == 121
    assert db.people.count_documents({}) == 1


def test_queryable_encryption_is_refused(vault):
    _, client, encryption, _ = vault
    fields = {"fields": [{"path": "ssn", "bsonType": "string", "keyId": encryption.create_data_key("local"), "queries": {"queryType": "equality"}}]}
    db = client.get_database("queryable", codec_options=OPTIONS)
    with pytest.raises(OperationFailure) as caught:
        db.command({"create": "people", "encryptedFields": fields})
    assert caught.value.code == 238
    assert db.list_collection_names() == []
