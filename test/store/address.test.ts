import { describe, expect, it } from 'vitest';
import { postgresAddress } from '../../src/store/address.ts';

describe('the address of a PostgreSQL', () => {
  it.each([
    'postgres://settled:pass@one:5432,two:5432/settled',
    'postgres://settled:pass@one,two/settled',
    'postgres://settled:pass@/settled?host=one,two&target_session_attrs=read-write',
    'postgres:///settled?host=one,two',
  ])('names one server, because the driver takes a list for a name: %s', (url) => {
    expect(() => postgresAddress(url)).toThrow(/names several servers; name one address that leads to the primary/);
  });

  it('may have a comma in its password', () => {
    expect(postgresAddress('postgres://settled:a,b@one/settled').name).toBe('postgres://one:5432/settled');
  });
});
