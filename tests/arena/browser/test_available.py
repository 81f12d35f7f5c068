"""Whether the other tests here can run; without a browser they are not collected."""


def test_there_is_a_browser(browser):
    assert browser.is_connected()
