/** Conversations in one SQLite file. It needs Node 22.13 or later. */
// #region store
import { createAgent } from 'runchart';
import { sqliteStore } from 'runchart/sqlite';
import { scriptedModel } from 'runchart/testing';

const model = scriptedModel(['Hello.']);

const store = sqliteStore('data/conversations.db', { durability: 'power' });
const agent = createAgent({ model, store });
const conversation = await agent.open('greeting');
console.log(await conversation.send('Hello?').text);
// At the end of the program:
await agent.close();
await store.close();
// #endregion
