/** Uses the server from another process: `npm run client`. */
// #region client
import { connect } from 'runchart/client';

const client = connect({
  baseURL: process.env.SERVER ?? 'http://127.0.0.1:8787',
  headers: { authorization: 'Bearer secret' },
});
const conversation = await client.open('page');
console.log(await conversation.send('Hello').text);
await client.close();
// #endregion
