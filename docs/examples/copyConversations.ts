/** Copies every conversation of one store into another one. */
// #region copy
import { copyConversations, createAgent, memoryStore } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { scriptedModel } from 'runchart/testing';

const files = jsonlStore('.copied');
const database = memoryStore(); // or sqliteStore(path), or postgresStore(pool)

const agent = createAgent({ model: scriptedModel(['Hello.']), store: files });
const conversation = await agent.open('greeting');
await conversation.send('Hello?').result;
await agent.close();

const { copied, left } = await copyConversations(files, database, {
  onProgress: (done, of) => console.log(`${done} of ${of}`),
});
console.log(`${copied} copied, ${left.length} existed already`);
// #endregion
