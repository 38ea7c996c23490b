/**
 * Every act of an editor is one transaction: the documents that it changes, and the record of who changed what. With
 * the values before and after in the record, undoing is the same act the other way round.
 */
import { ObjectId } from 'mongodb';
import type { News } from './connect.js';
import type { Change, Edit, Post, Source } from './types.js';

/** A refusal to show to whoever asked. */
export class Refused extends Error {}

export interface Wish {
  collection: 'posts' | 'sources';
  id: string;
  /** Fields and their new values; null takes a field away. */
  set: Record<string, unknown>;
}

/** The fields of a document as a record of a change keeps them: absent is null, a dot in a path is a step. */
function fieldsOf(document: Post | Source, names: string[]): Record<string, unknown> {
  const at = (path: string) => path.split('.').reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], document);
  // A name with a dot cannot be a field's name in an update of the record, so the record has a colon there.
  return Object.fromEntries(names.map((name) => [name.replaceAll('.', ':'), at(name) ?? null]));
}

function updateFrom(fields: Record<string, unknown>): { $set?: Record<string, unknown>; $unset?: Record<string, ''> } {
  const set: Record<string, unknown> = {};
  const unset: Record<string, ''> = {};
  for (const [name, value] of Object.entries(fields)) {
    const path = name.replaceAll(':', '.');
    if (value === null) unset[path] = '';
    else set[path] = value;
  }
  return { ...(Object.keys(set).length && { $set: set }), ...(Object.keys(unset).length && { $unset: unset }) };
}

/** Changes documents and keeps who did it. Refuses when a document is not there. */
export async function change(news: News, who: string, what: string, note: string, wishes: Wish[]): Promise<ObjectId> {
  const id = new ObjectId();
  await news.client.withSession((session) =>
    session.withTransaction(async () => {
      const edits: Edit[] = [];
      for (const wish of wishes) {
        const collection = news.db.collection<Post | Source>(wish.collection);
        const document = await collection.findOne({ _id: wish.id }, { session });
        if (!document) throw new Refused(`${wish.id} is not there`);
        const after = Object.fromEntries(Object.entries(wish.set).map(([name, value]) => [name.replaceAll('.', ':'), value]));
        await collection.updateOne({ _id: wish.id }, updateFrom(after), { session });
        edits.push({ collection: wish.collection, id: wish.id, before: fieldsOf(document, Object.keys(wish.set)), after });
      }
      await news.changes.insertOne({ _id: id, at: new Date(), who, what, note, edits }, { session });
    }),
  );
  return id;
}

/** Undoes a change unless it was undone already or a later change touched the same fields. */
export async function undo(news: News, who: string, id: ObjectId): Promise<void> {
  await news.client.withSession((session) =>
    session.withTransaction(async () => {
      const undone = await news.changes.findOne({ _id: id }, { session });
      if (!undone) throw new Refused('there is no such change');
      if (undone.undone) throw new Refused('it was undone already');
      for (const edit of undone.edits) {
        const collection = news.db.collection<Post | Source>(edit.collection);
        // What the change wrote has to be there still: null matches a field that is absent.
        const unchanged = Object.fromEntries(Object.entries(edit.after).map(([name, value]) => [name.replaceAll(':', '.'), { $eq: value }]));
        const { matchedCount } = await collection.updateOne({ $and: [{ _id: edit.id }, unchanged] } as object, updateFrom(edit.before), { session });
        if (!matchedCount) throw new Refused(`${edit.id} was changed since: undo the later change first`);
      }
      const record: Change = {
        _id: new ObjectId(),
        at: new Date(),
        who,
        what: 'undo',
        note: `undid: ${undone.note}`,
        edits: undone.edits.map(({ collection, id, before, after }) => ({ collection, id, before: after, after: before })),
        undoes: id,
      };
      await news.changes.insertOne(record, { session });
      await news.changes.updateOne({ _id: id }, { $set: { undone: record._id } }, { session });
    }),
  );
}
