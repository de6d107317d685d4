import { describe, expect, it, onTestFinished } from 'vitest';
import { commandEnvironment } from '../../../src/tools/coding/shell.ts';
import { call } from './codingBench.ts';

const secrets = {
  OPENAI_API_KEY: 'sk-0123456789abcdef',
  AWS_SECRET_ACCESS_KEY: 'aws-0123456789',
  GITHUB_TOKEN: 'ghp_0123456789',
  DATABASE_URL: 'postgres://me:hunter2@db/x',
  MY_PASSPHRASE: 'open sesame',
  HARMLESS_LOOKING: 'and still a secret',
};

describe('the environment of a command', () => {
  it('it contains the listed variables, and nothing else of this process', async () => {
    for (const [name, value] of Object.entries(secrets)) process.env[name] = value;
    onTestFinished(() => {
      for (const name of Object.keys(secrets)) delete process.env[name];
    });
    const { text } = await call(process.cwd(), 'Bash', { command: 'env; set' });
    for (const [name, value] of Object.entries(secrets)) {
      expect(text).not.toContain(name);
      expect(text).not.toContain(value);
    }
    expect(text).toContain(`PATH=${process.env.PATH}`);
    expect(text).toContain(`PWD=${process.cwd()}`);
  });

  it('it contains paths, languages and proxies, and TERM=dumb', () => {
    const host = { PATH: '/bin', HOME: '/h', LC_ALL: 'C', GOPATH: '/go', https_proxy: 'http://p:1', TERM: 'xterm' };
    expect(commandEnvironment({ ...host, ...secrets }, 'm1')).toEqual({ ...host, TERM: 'dumb', RUNCHART_CALL: 'm1' });
  });

  it.each(['HTTPS_PROXY', 'https_proxy', 'GOPROXY', 'PIP_INDEX_URL', 'npm_config_registry', 'LC_ALL', 'HOME'])(
    'it does not contain an address with a password, as %s or in a variable that is named',
    (name) => {
      const host = { [name]: 'http://me:hunter2@proxy:1' };
      expect(JSON.stringify(commandEnvironment(host, 'm1'))).not.toContain('hunter2');
    },
  );

  it.each(['HTTP_PROXY', 'https_proxy', 'all_proxy', 'NO_PROXY'])(
    'nor a proxy with a password and no scheme, as %s',
    (name) => {
      expect(commandEnvironment({ [name]: 'me:hunter2@proxy:1' }, 'm1')).not.toHaveProperty(name);
      expect(commandEnvironment({ [name]: 'hunter2@proxy' }, 'm1')).not.toHaveProperty(name);
      expect(commandEnvironment({ [name]: 'proxy:1' }, 'm1')).toHaveProperty(name);
      expect(commandEnvironment({ LANGUAGE: 'de:de_AT@euro' }, 'm1')).toHaveProperty('LANGUAGE');
    },
  );

  it('it contains the variables that the host names in RUNCHART_BASH_ENV too', () => {
    const host = { ...secrets, RUNCHART_BASH_ENV: 'DATABASE_URL, HARMLESS_LOOKING,' };
    const { DATABASE_URL, HARMLESS_LOOKING } = secrets;
    expect(commandEnvironment(host, 'm1')).toEqual({
      DATABASE_URL,
      HARMLESS_LOOKING,
      TERM: 'dumb',
      RUNCHART_CALL: 'm1',
    });
  });

  it('it keeps the mark of an outer command, so that the outer command finds all processes of the inner one', () => {
    expect(commandEnvironment({ RUNCHART_CALL: 'outer' }, 'inner')).toMatchObject({ RUNCHART_CALL: 'outer inner' });
  });
});
