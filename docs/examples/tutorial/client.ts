/** Step 5 of the tutorial: a client of the server. */
// #region client
import { connect } from 'runchart/client';

const client = connect({
  baseURL: `http://127.0.0.1:${process.env.PORT ?? 3000}/api`,
  headers: { authorization: 'Bearer secret' },
});
const conversation = await client.open('page');
console.log(await conversation.send('How much is there?').text);
await client.close();
// #endregion
