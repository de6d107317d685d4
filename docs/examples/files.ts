/** A conversation that is a file: a second agent, as after a restart, continues it. */
// #region files
import { createAgent } from 'runchart';
import { jsonlStore } from 'runchart/node';
import { scriptedModel } from 'runchart/testing';

// A script in place of a real model.
const model = scriptedModel(['Hello.', 'You greeted me.']);

const agent = createAgent({ model, store: jsonlStore('.files') });
const conversation = await agent.open('greeting');
console.log(await conversation.send('Hello?').text);
await agent.close();

const later = createAgent({ model, store: jsonlStore('.files') }); // in another process
const again = await later.open('greeting');
console.log(await again.send('What have I written?').text);
console.log(again.messages().length, 'messages in .files/greeting.jsonl');
await later.close();
// #endregion
