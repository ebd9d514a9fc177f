// A product and a browser for one file of tests, and topics with rows in them.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { Product, browser, open, until } from "./harness.mjs";

/** What the tests of one file share; made before the first and ended after the last. */
export function ground() {
  const here = {
    product: undefined,
    chrome: undefined,

    /** A page of its own; the test ends only if nothing forbidden happened on it. */
    async withPage(run, options) {
      const context = await here.chrome.newContext();
      try {
        const page = await open(context, here.product, options);
        await run(page, context);
        assert.deepEqual(page.problems, []);
      } finally {
        await context.close();
      }
    },

    /** A topic with `n` rows by another member; names are unique, so that tests do not meet. */
    async topic(name, n) {
      for (let row = 1; row <= n; row += 1) await here.product.send(`#${name}`, `${name} ${row}`, { as: "ci" });
      await here.settled(name, n);
      return here.product.conversation(`#${name}`);
    },

    /** The rows of a topic once the broker holds them all. */
    settled(name, n) {
      return until(async () => {
        const conversation = await here.product.conversation(`#${name}`);
        const rows = conversation === undefined ? [] : (await here.product.log(conversation)).map((row) => row.body);
        return rows.length >= n ? rows : undefined;
      });
    },
  };
  before(async () => {
    const { PAGE_STORE: store } = process.env;
    [here.product, here.chrome] = await Promise.all([store === undefined ? Product.up() : Product.apart(store), browser()]);
    await here.product.agent("ci");
  });
  after(async () => {
    await here.chrome?.close();
    await here.product?.down();
  });
  return here;
}
