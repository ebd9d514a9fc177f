import { render } from "preact";

const host = document.getElementById("app");
if (host) render(<p>Postrider</p>, host);
