/**
 * The clients of the server bench, in a process of their own: sockets that read events, and requests. A reader counts the
 * stops of runs and checks that its entries come without gap or repetition.
 */
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { serve } from './remote.mjs';

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
/** For requests that must not wait for a connection. */
const ownAgent = new Agent({ keepAlive: true });
const readers = new Map();
let port;

function post(path, body, connections = agent) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request({ port, path, method: 'POST', agent: connections, headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(JSON.stringify(body));
  });
}

class Reader {
  stops = 0;
  next = 0;
  faults = 0;
  text = '';

  constructor(id) {
    this.id = id;
    this.connect();
  }

  connect() {
    this.text = '';
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('latin1').on('error', () => {});
    const last = this.next === 0 ? '' : `Last-Event-ID: ${this.next - 1}\r\n`;
    this.socket.write(`GET /conversations/${this.id}/events HTTP/1.1\r\nHost: h\r\n${last}\r\n`);
    const { socket } = this;
    socket.on('data', (text) => {
      if (socket === this.socket) this.read(text);
    });
  }

  /** Looks only at complete frames of entries. */
  read(text) {
    const all = this.text + text;
    const end = all.lastIndexOf('\n\n') + 2;
    if (end === 1) {
      this.text = all;
      return;
    }
    this.text = all.slice(end);
    const frames = all.slice(0, end);
    for (const [, seq] of frames.matchAll(/^id: (\d+)$/gm)) {
      if (Number(seq) !== this.next) this.faults += 1;
      this.next = Number(seq) + 1;
    }
    for (const _ of frames.matchAll(/"type":"run-stop"/g)) this.stops += 1;
  }

  reconnect() {
    this.socket.destroy();
    this.connect();
  }
}

const all = () => [...readers.values()].flat();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const silent = [];

serve({
  async begin(options) {
    port = options.port;
  },
  async create({ ids }) {
    const statuses = await Promise.all(ids.map((id) => post('/conversations', { id })));
    return statuses.filter((status) => status >= 300);
  },
  async read({ ids, each }) {
    for (const id of ids)
      readers.set(
        id,
        Array.from({ length: each }, () => new Reader(id)),
      );
    while (!all().every(({ next }) => next > 0)) await sleep(20);
  },
  /** Sends a message to each conversation, spread over some time. */
  async send({ ids, content, spreadMs = 0 }) {
    await Promise.all(
      ids.map(async (id, index) => {
        if (spreadMs > 0) await sleep((spreadMs * index) / ids.length);
        let status = await post(`/conversations/${id}/messages`, { content });
        // The last reply was complete, and the stop of its run is not stored yet.
        for (let time = 0; status === 409 && time < 100; time++) {
          await sleep(20);
          status = await post(`/conversations/${id}/messages`, { content });
        }
        if (status !== 202) throw new Error(`a message was answered ${status}`);
      }),
    );
  },
  /** Waits until every reader has received this many stops, and resolves with the number of faults. */
  async stops({ count }) {
    for (const until = Date.now() + 120_000; !all().every(({ stops }) => stops >= count); await sleep(10))
      if (Date.now() > until) throw new Error(`${all().filter(({ stops }) => stops < count).length} readers wait`);
    return all().reduce((sum, { faults }) => sum + faults, 0);
  },
  /**
   * Milliseconds of one `POST …/cancel`, from the request to its answer, and of a request of the same moment that the server
   * answers without any work.
   */
  async cancel({ id }) {
    const timed = async (path, expected) => {
      const since = performance.now();
      const status = await post(path, {}, ownAgent);
      if (status !== expected) throw new Error(`${path} was answered ${status}`);
      return performance.now() - since;
    };
    const [cancel, probe] = await Promise.all([timed(`/conversations/${id}/cancel`, 200), timed('/probe', 204)]);
    return { cancel, probe };
  },
  /** Readers that read nothing, and requests that stay half sent. */
  async annoy({ ids, silent: count, halfSent, bodyBytes }) {
    for (let index = 0; index < count; index++) {
      const id = ids[index % ids.length];
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.pause();
      socket.write(`GET /conversations/${id}/events HTTP/1.1\r\nHost: h\r\n\r\n`);
      silent.push(socket);
    }
    const body = Buffer.alloc(bodyBytes - 1000, 'x');
    for (let index = 0; index < halfSent; index++) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.resume();
      const head = `Host: h\r\nContent-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n`;
      socket.write(`POST /conversations/${ids[0]}/messages HTTP/1.1\r\n${head}\r\n`);
      socket.write(body);
      silent.push(socket);
    }
  },
  /** Every reader reconnects some times. */
  async storm({ times }) {
    for (let time = 0; time < times; time++) {
      for (const reader of all()) reader.reconnect();
      await sleep(100);
    }
  },
  async leave() {
    for (const { socket } of all()) socket.destroy();
    for (const socket of silent.splice(0)) socket.destroy();
    readers.clear();
    agent.destroy();
  },
});
