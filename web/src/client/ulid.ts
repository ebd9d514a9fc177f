/** Ids for messages: ULID, 48 bits of time and 80 of chance. */

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export function ulid(now_ms: number, bytes: Uint8Array = crypto.getRandomValues(new Uint8Array(16))): string {
  let time = "";
  for (let left = now_ms, place = 0; place < 10; place += 1) {
    time = ALPHABET.charAt(left % 32) + time;
    left = Math.floor(left / 32);
  }
  let chance = "";
  for (const byte of bytes.subarray(0, 16)) chance += ALPHABET.charAt(byte % 32);
  return time + chance;
}
