// Runs before the page is drawn, so that a chosen theme does not flash.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripts");
  try {
    const theme = localStorage.getItem("kb.theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {
    // Storage is forbidden: the theme is the system's.
  }
})();
