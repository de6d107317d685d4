/** A bucket of S3, or of a server with its interface, for contents that are too large for an engine. */
import type { AwsClient } from 'aws4fetch';
import { ConfigurationError, RunchartError, thrownMessage } from '../errors.ts';
import { checkOptionsOf, nonEmptyText, object } from '../validation.ts';
import { type BlobStore, ofName, placeOf } from './blobStore.ts';

/** The options of `blobBucket`. */
export interface BlobBucketOptions {
  /** The address of the bucket, such as `https://my-bucket.s3.eu-central-1.amazonaws.com` or `http://minio:9000/my-bucket`. */
  url: string;
  /** The id of the access key. */
  accessKeyId: string;
  /** The secret of the access key. It signs requests, and is not sent. */
  secretAccessKey: string;
  /** The token of temporary credentials. */
  sessionToken?: string;
  /** The region of the bucket. Default: `us-east-1`. */
  region?: string;
  /** The beginning of all names in the bucket. Default: `runchart/`. */
  prefix?: string;
}

const url = {
  expected: 'an http address without a query',
  test: (value: unknown) => typeof value === 'string' && /^https?:\/\/[^?#]+$/.test(value),
};
const optionsValidator = object({
  ...{ url, accessKeyId: nonEmptyText, secretAccessKey: nonEmptyText, sessionToken: nonEmptyText },
  ...{ region: nonEmptyText, prefix: { expected: 'a path', test: isPath } },
});
function isPath(value: unknown): boolean {
  return typeof value === 'string' && /^[A-Za-z0-9._/-]*$/.test(value);
}
/** Tries again where the server is busy or has failed. */
const RETRIES = 4;

async function clientOf({ accessKeyId, secretAccessKey, sessionToken, region }: BlobBucketOptions): Promise<AwsClient> {
  const signing = await import('aws4fetch').catch(() => {
    throw new ConfigurationError('blobBucket() needs the package aws4fetch: npm install aws4fetch');
  });
  return new signing.AwsClient({
    ...{ accessKeyId, secretAccessKey, service: 's3', region: region ?? 'us-east-1', retries: RETRIES },
    ...(sessionToken !== undefined && { sessionToken }),
  });
}

/** The names in one page of a list, and where the next page begins. */
function pageIn(xml: string): { names: string[]; next: string | undefined } {
  const names = [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, name]) => name ?? '');
  return { names, next: /<NextContinuationToken>([^<]*)<\/NextContinuationToken>/.exec(xml)?.[1] };
}

/**
 * Keeps contents in a bucket. It needs the package `aws4fetch`, which signs requests. Throws ConfigurationError for an invalid option.
 */
export function blobBucket(options: BlobBucketOptions): BlobStore {
  checkOptionsOf('blobBucket', options, optionsValidator);
  const { url, accessKeyId, secretAccessKey, prefix = 'runchart/' } = options;
  if (!url || !accessKeyId || !secretAccessKey)
    throw new ConfigurationError('blobBucket() needs the options url, accessKeyId and secretAccessKey');
  const root = url.replace(/\/+$/, '');
  let client: Promise<AwsClient> | undefined;

  async function ask(path: string, request: RequestInit, isMissingFine = false): Promise<Response> {
    client ??= clientOf(options);
    let why: string;
    try {
      const response = await (await client).fetch(`${root}/${path}`, request);
      if (response.ok || (isMissingFine && response.status === 404)) return response;
      why = `${response.status} ${(await response.text()).slice(0, 200)}`;
    } catch (error) {
      if (RunchartError.isRunchartError(error)) throw error;
      why = thrownMessage(error);
    }
    throw new RunchartError('store', `the bucket ${root} does not carry out ${request.method} ${path}: ${why}`);
  }
  const keyOf = (id: string, name: string): string => `${prefix}${placeOf(id)}/${name}`;
  return {
    async put(id, name, bytes) {
      await ask(keyOf(id, name), { method: 'PUT', body: bytes as BodyInit });
    },
    async get(id, name) {
      const response = await ask(keyOf(id, name), { method: 'GET' });
      return ofName(name, new Uint8Array(await response.arrayBuffer()));
    },
    async delete(id) {
      let next: string | undefined;
      do {
        const query = new URLSearchParams({ 'list-type': '2', prefix: keyOf(id, '') });
        if (next !== undefined) query.set('continuation-token', next);
        const page = pageIn(await (await ask(`?${query}`, { method: 'GET' })).text());
        for (const name of page.names) await ask(name, { method: 'DELETE' }, true);
        next = page.next;
      } while (next !== undefined);
    },
  };
}
