/** Every conversation of one store in another one. */
import { copyConversations, memoryStore } from 'runchart';

const files = memoryStore();
const database = memoryStore();

// #region copy
const { copied, left } = await copyConversations(files, database, {
  onProgress: (done, of) => console.log(`${done} of ${of}`),
});
console.log(`${copied} copied, ${left.length} existed already`);
// #endregion
