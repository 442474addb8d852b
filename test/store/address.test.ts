import { describe, expect, it } from 'vitest';
import { postgresAddress } from '../../src/store/address.ts';

describe('the address of a PostgreSQL', () => {
  it.each([
    ['postgres://settled:pass@one:5433,two/settled', ['one:5433', 'two:5432'], 'postgres://one:5433,two:5432/settled'],
    [
      'postgres://settled:p%2Cq@one,two,three/settled?sslmode=no-verify&target_session_attrs=read-write',
      ['one:5432', 'two:5432', 'three:5432'],
    ],
    [
      'postgres://settled:pass@[::1]:5433,[::2]/settled',
      ['[::1]:5433', '[::2]:5432'],
      'postgres://[::1]:5433,[::2]:5432/settled',
    ],
  ])('may name several servers, as libpq has it: %s', (url, hosts, name = expect.any(String)) => {
    const address = postgresAddress(url);
    expect(address.name).toEqual(name);
    expect(address.servers.map((server) => new URL(server.name).host)).toEqual(hosts);
    // Each has the password and the parameters.
    const { password, search } = new URL(address.servers[0]?.url ?? '');
    const given = new URLSearchParams(url.split('?')[1]);
    for (const server of address.servers) {
      expect(new URL(server.url).password).toBe(password);
      expect(new URL(server.url).searchParams.get('sslmode')).toBe(given.get('sslmode'));
      expect(server.name).not.toContain('pass');
    }
    expect(search.includes(',')).toBe(false);
  });

  it.each([
    ['postgres://settled:pass@one,/settled', 'names no host'],
    ['postgres://settled:pass@,one/settled', 'names no host'],
    ['postgres://settled:pass@one,one:5432/settled', 'names a server twice'],
    ['postgres:///settled?host=one,two', 'must say one host here; several go before the question mark'],
    ['postgres://settled:pass@one,two/settled?port=1,2', 'must say one port here; several go before the question mark'],
    ['postgres://settled:pass@one,two:99999/settled', 'is not an address'],
    ['postgres://settled:pass@a,b,c,d,e,f,g,h,i,j/settled', 'names more than 9 servers'],
    ['postgres://settled:pass@one,two/settled?target_session_attrs=standby', 'settled writes, and uses no standby'],
  ])('is refused: %s', (url, why) => {
    expect(() => postgresAddress(url)).toThrow(why);
  });

  it('may have a comma in its password', () => {
    expect(postgresAddress('postgres://settled:a,b@one/settled').name).toBe('postgres://one:5432/settled');
  });
});
