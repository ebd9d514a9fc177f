import { defineConfig } from "vite";

// The page is served under a policy that allows nothing inline, so nothing may be turned into a data: address.
export default defineConfig({
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    // `npx vite` shows the page over a running product: POSTRIDER_URL=http://127.0.0.1:7440.
    proxy: Object.fromEntries(
      ["/v1", "/page", "/metrics", "/readyz"].map((path) => [
        path,
        { target: process.env["POSTRIDER_URL"] ?? "http://127.0.0.1:7440", ws: true, changeOrigin: true },
      ]),
    ),
  },
  test: { include: ["src/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
