/**
 * Requests one page of the web. Rule: a name is resolved once, all its addresses must be public, and the connection goes
 * to one of them. No redirect is followed here. The answer is bounded in size, after decompression too. No credentials,
 * cookies or proxies are used.
 */
import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { thrownMessage } from '../../../errors.ts';
import { type Refusal, refused } from '../workspace.ts';
import { isPublicAddress } from './publicAddress.ts';

const BYTES_MAX = 5 * 1_048_576;
const HEADER_BYTES_MAX = 32 * 1_024;

export interface NetworkAddress {
  address: string;
  family: 4 | 6;
}

/** Resolves names to addresses, and decides which addresses may be reached. */
export interface Network {
  resolve(host: string): Promise<readonly NetworkAddress[]>;
  isAllowed(address: string, port: number): boolean;
}

export const internet: Network = {
  resolve: async (host) => (await lookup(host, { all: true })) as NetworkAddress[],
  isAllowed: isPublicAddress,
};

export type PageAnswer =
  | { kind: 'page'; status: number; contentType: string; bytes: Buffer; isCut: boolean }
  | { kind: 'redirect'; status: number; location: string };

/** Throws the signal's reason on abort. */
export async function requestPage(url: URL, network: Network, signal: AbortSignal): Promise<PageAnswer | Refusal> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const checked = checkedAddresses(host, Number(url.port) || defaultPort(url), network);
  const addresses = await unlessAborted(signal, checked);
  if ('kind' in addresses) return addresses;
  try {
    return await answerFrom(url, addresses, signal);
  } catch (error) {
    signal.throwIfAborted();
    return refused('unreachable', `${url.host} gave no page: ${thrownMessage(error)}`);
  }
}

/** A name server may take longer than the call has. */
async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<void>((resolve) => {
    stop = resolve;
    signal.addEventListener('abort', stop);
  });
  const first = await Promise.race([work, aborted]);
  signal.removeEventListener('abort', stop);
  signal.throwIfAborted();
  return first as T;
}

const defaultPort = ({ protocol }: URL): number => (protocol === 'https:' ? 443 : 80);

async function checkedAddresses(
  host: string,
  port: number,
  { resolve, isAllowed }: Network,
): Promise<readonly NetworkAddress[] | Refusal> {
  const family = isIP(host);
  try {
    const addresses = family === 0 ? await resolve(host) : [{ address: host, family: family as 4 | 6 }];
    if (addresses.length === 0) return refused('unreachable', `${host} has no address`);
    if (addresses.every(({ address }) => isAllowed(address, port))) return addresses;
  } catch (error) {
    return refused('unreachable', `the name ${host} has no address: ${thrownMessage(error)}`);
  }
  return refused('not_allowed', `${host} leads to this machine or to a private network, which WebFetch does not reach`);
}

async function answerFrom(url: URL, addresses: readonly NetworkAddress[], signal: AbortSignal): Promise<PageAnswer> {
  const message = await responseOf(url, addresses, signal);
  try {
    const { statusCode: status = 0, headers } = message;
    if (status >= 300 && status < 400 && headers.location !== undefined)
      return { kind: 'redirect', status, location: headers.location };
    const { bytes, isCut } = await bodyOf(message);
    return { kind: 'page', status, contentType: headers['content-type'] ?? '', bytes, isCut };
  } finally {
    message.destroy();
  }
}

function responseOf(url: URL, addresses: readonly NetworkAddress[], signal: AbortSignal): Promise<IncomingMessage> {
  // The connection uses the checked addresses, even if the name has others by now.
  const pinned: LookupFunction = (_host, { all }, done) => {
    const [first] = addresses;
    if (all) done(null, [...addresses]);
    else done(null, first?.address ?? '', first?.family);
  };
  return new Promise((resolve, reject) => {
    const start = url.protocol === 'https:' ? requestHttps : requestHttp;
    const sent = start(url, {
      ...{ agent: false, lookup: pinned, signal, maxHeaderSize: HEADER_BYTES_MAX },
      headers: {
        accept: 'text/html, text/markdown, text/plain, */*;q=0.5',
        'accept-encoding': 'gzip, deflate, br',
        'user-agent': 'runchart',
      },
    });
    sent.once('response', resolve).once('error', reject).end();
  });
}

/** The body, decompressed, as far as the limit. */
async function bodyOf(message: IncomingMessage): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of decompressed(message)) {
    chunks.push((chunk as Buffer).subarray(0, BYTES_MAX - size));
    size += (chunk as Buffer).length;
    if (size > BYTES_MAX) break;
  }
  return { bytes: Buffer.concat(chunks), isCut: size > BYTES_MAX };
}

function decompressed(message: IncomingMessage): AsyncIterable<unknown> {
  const encoding = (message.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const inflater =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? createGunzip()
      : encoding === 'deflate'
        ? createInflate()
        : encoding === 'br'
          ? createBrotliDecompress()
          : undefined;
  if (!inflater) return message;
  message.once('error', (error) => inflater.destroy(error));
  return message.pipe(inflater);
}
