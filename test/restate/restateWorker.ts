/** A worker of the tests, in a process of its own. It prints its address. */
import { blobDirectory, serveAgent } from '../../src/restate/index.ts';
import { agent, values } from './workerAgent.ts';

const { url } = await serveAgent(agent, {
  port: Number(values.port ?? 0),
  ...(values.admin && { admin: values.admin }),
  ...(values.blobs && { store: blobDirectory(values.blobs) }),
});
console.log(url);
